"""`ropewalk up`: everything in one process, or a server that accepts and worker processes that execute."""

import asyncio
import gc
import socket
from contextlib import nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from ropewalk.cli.backend.project import Project, on_store
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes.listen_address import require_local
from ropewalk.cli.processes.reloading import (
    Reload,
    asked_or_changed,
    is_due,
    reload_option,
    socket_option,
    start_anew,
)
from ropewalk.cli.processes.watching import interrupts
from ropewalk.cli.views.console import console, print_json_line
from ropewalk.cli.views.logs import logging_as
from ropewalk.cli.views.progress import LogView
from ropewalk.core.errors import InvalidInput
from ropewalk.engines.process import settle_in
from ropewalk.modules import catalogue
from ropewalk.store import workspaces
from ropewalk.wiring import LogForm, Settings, open_backend

if TYPE_CHECKING:
    from ropewalk.api.doors.server import ServerSettings


@click.command()
@click.option("--host", help="Where to listen. [env: ROPEWALK_SERVER_HOST; default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535),
              help="0 is any that is free. [env: ROPEWALK_SERVER_PORT; default: 8470]")  # fmt: skip
@click.option("--allow-remote", is_flag=True, help="Let other machines in, if --host is reached from there.")
@click.option("--workers", type=click.IntRange(1, 64),
              help="How many processes execute, on PostgreSQL; if several, not the server. [default: 1]")  # fmt: skip
@click.option("--no-dispatch", is_flag=True, help="Accept, and leave executing to others.")
@click.option("--new-token", is_flag=True, help="Print another token with all rights; for when the first was lost.")
@reload_option
@socket_option
@on_store
def up(project: Project, host: str | None, port: int | None, allow_remote: bool, workers: int | None,
       no_dispatch: bool, new_token: bool, reload: bool, number: int | None) -> int:  # fmt: skip
    """Serve the API, and execute what is started.

    The first start on a store prints a token with all rights, once. SIGTERM or Ctrl-C drains: no new
    request is accepted, those under way are answered, running nodes finish. A second one leaves at once, which is as
    safe as a crash.
    """
    project = project.told(
        server__host=host,
        server__port=port,
        server__allow_remote=True if allow_remote else None,
        server__workers=workers,
        dispatcher__enabled=False if no_dispatch else None,
    )
    said = project.configuration
    if said["server.workers"] > 1 and not project.is_shared:
        raise InvalidInput(f"a file has one process, and --db is {project.place}: --workers needs PostgreSQL")
    if not said["server.allow_remote"]:
        require_local(said["server.host"])
    view = LogView(console(is_error=True), is_json=project.is_json)
    changes = Reload(project, view) if reload else None
    kept = finish(_serve(project, view, changes, number, wants_token=new_token))
    return Code.OK if kept is None else start_anew(changes, kept)


async def _serve(project: Project, view: LogView, changes: Reload | None, number: int | None, *,
                 wants_token: bool) -> int | None:  # fmt: skip
    """Serves until a signal comes; the number of the socket, if the server is to start anew on it."""
    # What a start makes stays, and is not looked through before it is all there.
    gc.disable()
    # Here, since every other command does without them.
    from ropewalk.access.first import another_admin, ensure_admin
    from ropewalk.api.app import create_app
    from ropewalk.api.doors.server import address_of, listen, serving
    from ropewalk.cli.processes.worker_processes import running_workers

    said = project.configuration
    with logging_as(project.settings.telemetry.log, view) as lookup, interrupts(view) as asked:
        known = catalogue(project.nodes)
        listener = listen(said["server.host"], said["server.port"]) if number is None else socket.socket(fileno=number)
        known.types.tell_of_missing()
        async with open_backend(_engine_settings(project), known.types, known.functions) as backend:
            lookup.observer = backend.service(workspaces.DEFAULT).engine.observer
            app = create_app(backend, version("ropewalk"))
            workers = _processes(project)
            async with (
                running_workers(project, workers, view) if workers else nullcontext(),
                serving(app, listener, _server_settings(project)),
            ):
                token = await ensure_admin(backend.store)
                if token is None and wants_token:
                    token = await another_admin(backend.store)
                _introduce(project, address_of(listener), token)
                # In a thread: the first request does not wait for all of it.
                await asyncio.to_thread(known.types.import_all)
                settle_in()
                gc.enable()
                await asked_or_changed(asked, changes)
                # Clients that come while the server starts anew wait in the queue of the socket that is kept.
                kept = listener.dup() if is_due(asked, changes) else None
                view.say("draining; another signal leaves at once")
        view.say("everything is answered and handed back")
        return kept.detach() if kept is not None and is_due(asked, changes) else None


def _processes(project: Project) -> int:
    """How many worker processes there are beside the server: with more than one, no node can bring the server down."""
    said = project.configuration
    return said["server.workers"] if said["dispatcher.enabled"] and said["server.workers"] > 1 else 0


def _engine_settings(project: Project) -> Settings:
    settings = project.settings
    if project.configuration["dispatcher.enabled"] and not _processes(project):
        return settings
    return replace(settings, worker=replace(settings.worker, claims=False, hands=0, executions=0))


def _server_settings(project: Project) -> "ServerSettings":
    """The limits that are configured; never more connections than there may be open files."""
    from ropewalk.api.doors.connection_monitor import ConnectionLimits
    from ropewalk.api.doors.server import ServerSettings, room_for_connections

    said = project.configuration
    limits = ConnectionLimits(
        headers=said["server.header_timeout"],
        body=said["server.body_timeout"],
        idle=said["server.idle_timeout"],
        writing=said["server.write_timeout"],
        connections=min(said["server.connections"], room_for_connections()),
        per_address=said["server.connections_per_address"],
    )
    return ServerSettings(limits=limits, drain=said["server.drain"])


def _introduce(project: Project, url: str, token: str | None) -> None:
    """Where it is, and the token, which cannot be read again; on stdout, which is not the log and has its form."""
    if project.is_json or project.settings.telemetry.log is LogForm.JSON:
        print_json_line({"url": url, "token": token, "db": project.place})
        return
    print(f"Ropewalk {version('ropewalk')} is ready at {url} (store: {project.place})", flush=True)
    if token is not None:
        print(f"Admin token, shown this once: {token}", flush=True)
