"""What people may tell an execution: one command each."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import click

from ropewalk.cli.arguments import json_value
from ropewalk.cli.backend.ids import execution_id
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import queries_on
from ropewalk.cli.backend.session import Session, finish, me, open_session
from ropewalk.cli.commands.executions_bulk import WhichExecutions, on_executions, tell_many
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes.attaching import Mode, attach, detach_option
from ropewalk.cli.views.console import print_json
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidInput, Unavailable
from ropewalk.core.execution import settling
from ropewalk.core.waits import Approval
from ropewalk.service.execution_bulk import BulkVerb

_PATIENCE: Final = 10
GRACE: Final = settling.GRACE // SECOND
Tell = Callable[[Session, str], Awaitable[bool]]


def _tell(project: Project, word: str, tell: Tell, done: str) -> Code:
    """Tell an execution something that lets nothing go on: an idle store stays idle."""

    async def telling() -> Code:
        async with open_session(project, executes=False) as session:
            execution = await execution_id(session.queries, word)
            is_new = await tell(session, execution)
        if project.is_json:
            print_json({"executionId": execution, "changed": is_new})
        else:
            print(f"{execution}: {done}" if is_new else f"{execution}: {done} already")
        return Code.OK

    return finish(telling())


@click.command()
@click.argument("execution")
@click.option("--reason", help="Kept in the log.")
@on_store_or_server
def pause(project: Project, execution: str, reason: str | None) -> int:
    """Start nothing more; what runs finishes."""
    return _tell(project, execution, lambda session, found: session.verbs.pause(found, me(), reason), "paused")


@click.command()
@on_executions(BulkVerb.CANCEL)
@click.option("--reason", help="Kept in the log.")
@on_store_or_server
def cancel(project: Project, execution: str | None, which: WhichExecutions, reason: str | None) -> int:
    """Stop an execution for good, or many.

    Many are counted first, and told once that is confirmed: on a terminal by an answer, elsewhere by --yes.
    """
    return (
        tell_many(project, BulkVerb.CANCEL, which, reason) if execution is None else _cancel(project, execution, reason)
    )


def _cancel(project: Project, execution: str, reason: str | None) -> Code:
    async def tell(session: Session, found: str) -> bool:
        is_new = await session.verbs.cancel(found, me(), reason)
        await _over(session, found)
        return is_new

    return _tell(project, execution, tell, "cancelled")


async def _over(session: Session, execution: str) -> None:
    """Wait for the end: running nodes have their grace, then the execution is over."""
    try:
        async with asyncio.timeout(GRACE + _PATIENCE):
            await session.queries.over(execution)
    except TimeoutError as error:
        raise Unavailable(f"{execution} was told to stop and has not yet: look again later") from error


def _decide(project: Project, execution: str, node: str | None, payload: str | None, item: int | None, detach: bool,
            *, approved: bool) -> Code:  # fmt: skip
    given = None if payload is None else json_value(payload, "--payload")

    async def act(session: Session) -> str:
        found = await execution_id(session.queries, execution)
        wanted = node or await _only_approval(session, found)
        await session.verbs.decide(found, wanted, approved=approved, by=me(), payload=given, item=item)
        return found

    return attach(project, act, Mode(detach))


async def _only_approval(session: Session, execution: str) -> str:
    """The node that waits for a person, if there is exactly one."""
    history = await session.queries.history(execution)
    works = history.folded().waiting.values()
    nodes = sorted({history.plan.ids[work.node] for work in works if isinstance(work.wait, Approval)})
    if len(nodes) != 1:
        waiting = f"these wait for one: {', '.join(nodes)}; name it" if nodes else "no node waits for one"
        raise InvalidInput(f"NODE: {waiting}")
    return nodes[0]


@click.command()
@click.argument("execution")
@click.argument("node", required=False)
@click.option("--payload", metavar="JSON", help="What the node hands on besides the decision.")
@click.option("--item", type=int, help="Which item of a map.")
@detach_option
@on_store_or_server
def approve(project: Project, execution: str, node: str | None, payload: str | None, item: int | None,
            detach: bool) -> int:  # fmt: skip
    """Say yes to an approval that is waiting."""
    return _decide(project, execution, node, payload, item, detach, approved=True)


@click.command()
@click.argument("execution")
@click.argument("node", required=False)
@click.option("--payload", metavar="JSON", help="What the node hands on besides the decision.")
@click.option("--item", type=int, help="Which item of a map.")
@detach_option
@on_store_or_server
def reject(project: Project, execution: str, node: str | None, payload: str | None, item: int | None,
           detach: bool) -> int:  # fmt: skip
    """Say no to an approval that is waiting."""
    return _decide(project, execution, node, payload, item, detach, approved=False)


@click.command()
@click.argument("execution")
@click.argument("name")
@click.argument("payload", required=False)
@detach_option
@on_store_or_server
def signal(project: Project, execution: str, name: str, payload: str | None, detach: bool) -> int:
    """Tell an execution something it waits for. PAYLOAD is JSON or @file."""
    given = None if payload is None else json_value(payload, "PAYLOAD")

    async def act(session: Session) -> str:
        found = await execution_id(session.queries, execution)
        await session.verbs.signal(found, name, given, me())
        return found

    return attach(project, act, Mode(detach))


@click.command()
@on_executions(BulkVerb.RETRY)
@detach_option
@on_store_or_server
def retry(project: Project, execution: str | None, which: WhichExecutions, detach: bool) -> int:
    """Try every failed node of an execution again, or of many.

    Many are counted first, and told once that is confirmed: on a terminal by an answer, elsewhere by --yes.
    """
    if execution is not None:
        return _retry(project, execution, detach)
    if detach:
        raise InvalidInput("--detach is for one EXECUTION: many are left to a background process if they take long")
    return tell_many(project, BulkVerb.RETRY, which)


def _retry(project: Project, execution: str, detach: bool) -> Code:
    async def act(session: Session) -> str:
        found = await execution_id(session.queries, execution)
        await session.verbs.retry(found, me())
        return found

    return attach(project, act, Mode(detach))


@click.command()
@click.argument("execution")
@click.option("--from", "node", required=True, metavar="NODE", help="The first node to execute anew.")
@click.option("--version", type=int, help="Another version of the workflow.")
@detach_option
@on_store_or_server
def rerun(project: Project, execution: str, node: str, version: int | None, detach: bool) -> int:
    """Execute anew from one node on, keeping what came before.

    The new execution is followed to its end, as `run` follows one.
    """

    async def act(session: Session) -> str:
        found = await execution_id(session.queries, execution)
        return await session.verbs.rerun(found, node, me(), version)

    return attach(project, act, Mode(detach, watches_owner=True, joins=True))


@click.command()
@click.argument("execution")
@detach_option
@on_store_or_server
def replay(project: Project, execution: str, detach: bool) -> int:
    """Execute the same version with the same input once more.

    Says whether the output is the same, or the failure. The new execution is followed to its end, as `run` follows one.
    """

    async def find() -> str:
        async with queries_on(project) as queries:
            return await execution_id(queries, execution)

    original = finish(find())
    mode = Mode(detach, watches_owner=True, joins=True, original=original)
    return attach(project, lambda session: session.verbs.replay(original, me()), mode)
