"""`ropewalk worker`: one of a fleet."""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import click

from ropewalk.cli.backend.project import Project, on_store
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes.health_port import HealthPort, open_port
from ropewalk.cli.processes.reloading import (
    Reload,
    asked_or_changed,
    is_due,
    reload_option,
    start_anew,
)
from ropewalk.cli.processes.watching import Interrupts, interrupts
from ropewalk.cli.views.console import console
from ropewalk.cli.views.logs import logging_as
from ropewalk.cli.views.progress import LogView
from ropewalk.core.errors import InvalidInput
from ropewalk.engines.base import Load
from ropewalk.engines.process import settle_in
from ropewalk.modules import catalogue
from ropewalk.service import Service
from ropewalk.store import workers
from ropewalk.wiring import Settings, open_service

MOST_SLOTS: Final = 1_000_000
SHORTEST_LEASE: Final = 1
LONGEST_LEASE: Final = 3600
LONGEST_DRAIN: Final = 3600
TELL_EVERY: Final = 10.0


@click.command()
@click.option("--slots", type=click.IntRange(1, MOST_SLOTS),
              help="How many executions it has in hand at once. [env: ROPEWALK_SLOTS; default: 20000]")  # fmt: skip
@click.option(
    "--pool",
    help="Only carry out the nodes of this pool, and own no executions. [env: ROPEWALK_POOL; default: default]",
)
@click.option("--lease", type=click.FloatRange(SHORTEST_LEASE, LONGEST_LEASE), metavar="SECONDS",
              help="Not heard of for so long, it counts as dead. [env: ROPEWALK_LEASE; default: 15]")  # fmt: skip
@click.option("--drain", type=click.FloatRange(0, LONGEST_DRAIN), metavar="SECONDS",
              help="How long running nodes may take when it leaves. [env: ROPEWALK_DRAIN; default: 10]")  # fmt: skip
@click.option("--health-port", type=click.IntRange(0, 65_535), metavar="PORT",
              help="Answer /healthz, /readyz and /metrics. [env: ROPEWALK_HEALTH_PORT; default: 0, none]")  # fmt: skip
@click.option("--host", help="Where that port is. [env: ROPEWALK_SERVER_HOST; default: 127.0.0.1]")
@click.option("--allow-remote", is_flag=True, help="Let other machines ask, if --host is reached from there.")
@click.option("--no-notify", is_flag=True, help="Look for work only now and then. [env: ROPEWALK_NOTIFY=0]")
@click.option("--pooled", is_flag=True, help="A transaction pooler is in between. [env: ROPEWALK_POOLED=1]")
@reload_option
@on_store
def worker(project: Project, slots: int | None, pool: str | None, lease: float | None, drain: float | None,
           health_port: int | None, host: str | None, allow_remote: bool, no_notify: bool, pooled: bool,
           reload: bool) -> int:  # fmt: skip
    """Execute what others start, as one of a fleet on PostgreSQL.

    SIGTERM or Ctrl-C drains it: running nodes finish, or are handed back without using up an attempt, and the other
    workers go on with its executions. A second one leaves at once, which is as safe as a crash.
    """
    if not project.is_shared:
        raise InvalidInput(
            f"a file has no workers, and --db is {project.place}: there `ropewalk run` and `ropewalk resume` execute; "
            "a fleet needs --db postgresql://user@host/database"
        )
    project = project.told(
        slots=slots,
        pool=pool,
        lease=lease,
        drain=drain,
        health_port=health_port,
        server__host=host,
        server__allow_remote=True if allow_remote else None,
        notify=False if no_notify else None,
        pooled=True if pooled else None,
    )
    view = LogView(console(is_error=True), is_json=project.is_json)
    changes = Reload(project, view) if reload else None
    return start_anew(changes) if finish(_work(project, project.settings, view, changes)) else Code.OK


async def _work(project: Project, settings: Settings, view: LogView, changes: Reload | None) -> bool:
    """Works until a signal comes; whether the worker is to start anew."""
    with logging_as(settings.telemetry.log, view) as lookup, interrupts(view) as asked:
        known = catalogue(project.nodes)
        known.types.tell_of_missing()
        settle_in()
        port = open_port(project)
        metrics = None if port is None else port.metrics
        # Outside: the port answers until the worker has left.
        async with AsyncExitStack() as until_left:
            async with open_service(settings, known.types, known.functions, metrics) as service:
                lookup.observer = service.engine.observer
                if port is not None:
                    await until_left.enter_async_context(port.answering(service, settings))
                await _introduce(project, service, view, port)
                await asyncio.to_thread(known.types.import_all)
                await _until_asked(service, view, asked, changes)
                if port is not None:
                    port.leave()
                view.say(f"draining: {_in_words(service.engine.load)}; another signal leaves at once")
            left = service.engine.load.executions
            view.say(f"worker {service.store.worker} has left; {_count(left, 'execution')} for others to go on with")
        return is_due(asked, changes)


async def _introduce(project: Project, service: Service, view: LogView, port: HealthPort | None) -> None:
    me = await workers.get(service.store, service.store.worker)
    assert me is not None, "a worker that has joined has a row"
    about = f"version {me.version}, pool {me.pool}, {me.slots:,} slots, lease {service.store.lease_seconds:g} s"
    view.say(
        f"worker {me.id} has joined {project.place}: {about}",
        worker=me.id,
        version=me.version,
        pool=me.pool,
        slots=me.slots,
        db=project.place,
    )
    if port is not None:
        view.say(f"health and figures at {port.url}", health=port.url)


async def _until_asked(service: Service, view: LogView, asked: Interrupts, changes: Reload | None) -> None:
    """Says from time to time how it goes, until it is told to leave, or its files have changed."""
    leaving = asyncio.ensure_future(asked_or_changed(asked, changes))
    # A worker that has just joined is idle; one that is given work at once says so too.
    told = _in_words(Load(0, 0))
    while not leaving.done():
        await asyncio.wait((leaving,), timeout=TELL_EVERY)
        if told != (told := _in_words(service.engine.load)) and not leaving.done():
            view.say(told)


def _in_words(load: Load) -> str:
    return f"{_count(load.executions, 'execution')}, {_count(load.runs, 'node')} running"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
