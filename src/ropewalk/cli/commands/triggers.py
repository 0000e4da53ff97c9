"""`ropewalk triggers`: what starts workflows besides a call."""

from typing import Any

import click

from ropewalk.cli.arguments import json_value
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import queries_on
from ropewalk.cli.backend.session import finish, me, open_session
from ropewalk.cli.backend.trigger_queries import trigger_queries
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer, print_json
from ropewalk.cli.views.text import json_line, plain
from ropewalk.cli.views.triggers import fires_listing, reasons_text, times_text, trigger_text, triggers_listing

MOST = 1_000
_limit = click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True)
_event = click.option("--event", metavar="JSON", help="What expressions see as `event`; @FILE reads it from a file.")


@click.group()
def triggers() -> None:
    """List what starts workflows, switch it, fire it, see what became of it."""


@triggers.command()
@click.option("--workflow", metavar="NAME", help="Only those of this workflow.")
@_limit
@on_store_or_server
def ls(project: Project, workflow: str | None, limit: int) -> int:
    """List triggers, and when each is due next."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            found = await trigger_queries(queries).listed(workflow, limit)
        return answer(found, lambda: triggers_listing(found), is_json=project.is_json)

    return finish(show_all())


@triggers.command()
@click.argument("trigger")
@on_store_or_server
def show(project: Project, trigger: str) -> int:
    """Show TRIGGER (its id or name): what it starts, and the address of a webhook."""

    async def draw() -> Code:
        async with queries_on(project) as queries:
            found = await trigger_queries(queries).trigger(trigger)
        return answer(found, lambda: trigger_text(found), is_json=project.is_json)

    return finish(draw())


@triggers.command()
@click.argument("trigger")
@_limit
@on_store_or_server
def fires(project: Project, trigger: str, limit: int) -> int:
    """List what became of its due times, deliveries or messages, the latest first."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            found = await trigger_queries(queries).fires(trigger, limit)
        return answer(found, lambda: fires_listing(found), is_json=project.is_json)

    return finish(show_all())


@triggers.command("next")
@click.argument("trigger")
@click.option("--count", type=click.IntRange(1, MOST), default=5, show_default=True)
@on_store_or_server
def next_(project: Project, trigger: str, count: int) -> int:
    """Say in words when a schedule is due, and its next due times in UTC."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            found = await trigger_queries(queries).times(trigger, count)
        return answer(found, lambda: times_text(found), is_json=project.is_json)

    return finish(show_all())


@triggers.command()
@click.argument("trigger")
@on_store_or_server
def explain(project: Project, trigger: str) -> int:
    """Say why TRIGGER starts nothing, or when it will."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            found = await trigger_queries(queries).reasons(trigger)
        return answer(found, lambda: reasons_text(found), is_json=project.is_json)

    return finish(show_all())


@triggers.command()
@click.argument("workflow")
@click.argument("settings", metavar="JSON")
@on_store_or_server
def create(project: Project, workflow: str, settings: str) -> int:
    """Start WORKFLOW by itself from now on: '{"cron": "0 3 * * *"}', or @FILE; see docs/triggers.md."""
    wanted = json_value(settings, "JSON")

    def told(made: Any) -> str:
        return f"{plain(made['name'])}: {plain(made['words'])}, id {made['id']}"

    return _act(project, "create", {"workflow": workflow, "settings": wanted}, told)


@triggers.command()
@click.argument("trigger")
@on_store_or_server
def remove(project: Project, trigger: str) -> int:
    """Take away TRIGGER; one that is part of a definition goes with the next version."""
    return _act(project, "remove", {"trigger": trigger}, lambda is_new: "removed" if is_new else "was gone already")


@triggers.command()
@click.argument("trigger")
@on_store_or_server
def enable(project: Project, trigger: str) -> int:
    """Let TRIGGER fire from now on; what was due while it was off is not fired."""
    return _act(project, "enable", {"trigger": trigger}, lambda is_new: "on" if is_new else "on already")


@triggers.command()
@click.argument("trigger")
@on_store_or_server
def disable(project: Project, trigger: str) -> int:
    """Let TRIGGER fire no more."""
    return _act(project, "disable", {"trigger": trigger}, lambda is_new: "off" if is_new else "off already")


@triggers.command()
@click.argument("trigger")
@_event
@on_store_or_server
def fire(project: Project, trigger: str, event: str | None) -> int:
    """Start what TRIGGER asks for now, whether or not it is on."""
    happening = None if event is None else json_value(event, "--event")
    return _act(project, "fire", {"trigger": trigger, "event": happening}, _told_of_fire)


@triggers.command()
@click.argument("trigger")
@_event
@on_store_or_server
def test(project: Project, trigger: str, event: str | None) -> int:
    """Say what TRIGGER would start; nothing is started."""
    happening = None if event is None else json_value(event, "--event")

    def told(found: Any) -> str:
        if not found["starts"]:
            return f"nothing would be started: {found['reason']}: {plain(found['detail'])}"
        return f"v{found['version']} would be started with: {json_line(found['input'], 300)}"

    return _act(project, "test", {"trigger": trigger, "event": happening}, told)


@triggers.command()
@click.argument("trigger")
@click.option("--since", required=True, metavar="MOMENT", help="From this moment on, like 2026-11-15T12:00:00Z.")
@click.option("--until", required=True, metavar="MOMENT", help="Up to this moment, which is past.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=1, show_default=True, help="How many at a time.")
@click.option("--dry-run", is_flag=True, help="Only say what would be started.")
@on_store_or_server
def backfill(project: Project, trigger: str, since: str, until: str, concurrency: int, dry_run: bool) -> int:
    """Start what was due in a range, by a trigger of its own that ends with the last of them."""
    about = {"trigger": trigger, "since": since, "until": until, "concurrency": concurrency, "dryRun": dry_run}

    def told(found: Any) -> str:
        times = "".join(f"\n  {each}" for each in found["times"])
        by = "" if found["trigger"] is None else f", by trigger {found['trigger']}"
        return f"{found['count']} due times{by}{times}"

    return _act(project, "backfill", about, told)


def _told_of_fire(fired: Any) -> str:
    if fired["executionId"] is None:
        return f"nothing was started: {fired['reason']}: {plain(fired['detail'] or '')}"
    return f"execution {fired['executionId']}"


def _act(project: Project, action: str, arguments: dict[str, Any], told: Any) -> int:
    """Ask the store or the server to do this, and say what came of it."""

    async def act() -> Code:
        async with open_session(project, executes=False) as session:
            found = await session.verbs.trigger(action, arguments, me())
        if project.is_json:
            print_json(found if isinstance(found, dict) else {"changed": found})
        else:
            print(told(found))
        return Code.OK

    return finish(act())
