"""What a doctor looks at on a server: one finding per thing, with what to do if it is not well."""

from collections.abc import Callable
from typing import Final

from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.workers import count_alive
from ropewalk.cli.commands.doctor.credentials import master_key
from ropewalk.cli.commands.doctor.findings import Finding, Health
from ropewalk.cli.views.progress import now
from ropewalk.cli.views.text import lapse
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.store import suspicion
from ropewalk.store.access import Reader
from ropewalk.store.postgres import PostgresReader
from ropewalk.store.postgres import looking as postgres
from ropewalk.store.postgres.looking import Server

OLDEST_MAINTAINED: Final = 140_000
FAR_APART: Final = 1 * SECOND
OF_ONE_WORKER: Final = 11
"""How many connections a worker may have at once: two small pools, and one each to write, to beat and to listen."""
FEW: Final = 5


async def examined_server(project: Project) -> list[Finding]:
    """Everything worth a look on the server, also one without our tables."""
    try:
        reader = await postgres.any_reader(project.db, pooled=project.fleet.pooled)
    except RopewalkError as error:
        return [Finding("store", Health.FAULT, str(error), "see to the server, or name another with --db")]
    try:
        return await _findings(project, reader)
    except RopewalkError as error:
        return [Finding("store", Health.FAULT, str(error), "see to the server")]
    finally:
        await reader.close()


async def _findings(project: Project, reader: PostgresReader) -> list[Finding]:
    server = await postgres.look_at(reader)
    checks: list[Callable[[Server], Finding]] = [_version, _role, _durability, _schema, _rights, _connections]
    found = [Finding("store", Health.OK, project.place), *(check(server) for check in checks), await _clock(reader)]
    is_ready = server.steps_taken == server.steps_known and not server.denied
    if not is_ready:
        return found
    more = [await _workers(project, reader), *await master_key(project, reader)]
    return [*found, *more, *await set_aside(project, reader)]


def _version(server: Server) -> Finding:
    if server.version_number < OLDEST_MAINTAINED:
        # One too old to be used at all is refused before anything can be asked of it.
        remedy = f"it gets no more fixes: use PostgreSQL {OLDEST_MAINTAINED // 10_000} or newer"
        return Finding("PostgreSQL", Health.WARNING, server.version, remedy)
    return Finding("PostgreSQL", Health.OK, server.version)


def _role(server: Server) -> Finding:
    if server.is_standby:
        return Finding("role", Health.FAULT, "standby", "it can only be read: name the primary server")
    return Finding("role", Health.OK, "primary")


def _durability(server: Server) -> Finding:
    if not server.has_fsync:
        return Finding("fsync", Health.WARNING, "off", "what is recorded may be lost with the machine: turn it on")
    return Finding("fsync", Health.OK, "on")


def _schema(server: Server) -> Finding:
    value = f"version {server.steps_taken} of {server.steps_known}"
    if server.steps_taken == server.steps_known:
        return Finding("schema", Health.OK, value)
    if server.steps_taken > server.steps_known:
        return Finding("schema", Health.FAULT, value, "it was made by a newer Ropewalk: use that one")
    if not server.may_create:
        return Finding("schema", Health.FAULT, value, "this user may not create tables: grant it, or let another do it")
    return Finding("schema", Health.OK, f"{value}; the first `ropewalk run` or `ropewalk worker` completes it")


def _rights(server: Server) -> Finding:
    if server.denied:
        more = f" and {len(server.denied) - FEW} more tables" if len(server.denied) > FEW else ""
        value = f"no right on {'; '.join(server.denied[:FEW])}{more}"
        return Finding("rights", Health.FAULT, value, "grant them, or use another user")
    return Finding("rights", Health.OK, "all that are needed")


def _connections(server: Server) -> Finding:
    free = server.most_connections - server.reserved_connections - server.connections
    value = (
        f"{server.connections} of max_connections = {server.most_connections}, {server.reserved_connections} reserved"
    )
    if free < OF_ONE_WORKER:
        remedy = f"one more worker takes up to {OF_ONE_WORKER}: raise max_connections, or use a pooler"
        return Finding("connections", Health.WARNING, value, remedy)
    return Finding("connections", Health.OK, value)


async def _clock(reader: PostgresReader) -> Finding:
    """Workers go by the server's time; this machine's only shows people how long ago something was."""
    before = now()
    ahead = await postgres.database_time(reader) - (before + now()) // 2
    value = f"{lapse(abs(ahead))} {'behind' if ahead > 0 else 'ahead of'} the server's"
    if abs(ahead) > FAR_APART:
        return Finding("clock", Health.WARNING, value, "set this machine's clock, or the server's")
    return Finding("clock", Health.OK, value)


async def _workers(project: Project, reader: PostgresReader) -> Finding:
    alive = await count_alive(project, reader)
    if not alive:
        return Finding("workers", Health.WARNING, "none is alive", f"start one with: {project.hint('worker')}")
    return Finding("workers", Health.OK, f"{alive} alive that own executions")


async def set_aside(project: Project, reader: Reader) -> list[Finding]:
    """Executions that workers have set aside and no worker takes up any more; no finding if there are none."""
    found = await suspicion.all_set_aside(reader)
    if not found:
        return []
    value = f"{len(found)}, the first is {found[0]}"
    remedy = f"their workers died of them: `{project.hint('explain', found[0])}` says more; resume or cancel them"
    return [Finding("set aside", Health.WARNING, value, remedy)]
