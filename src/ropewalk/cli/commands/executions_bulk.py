"""`cancel` and `retry` of many executions: which are meant, how many that are, and how it goes.

Nothing is told before a person has seen how many there are and said yes, or has said --yes beforehand.
"""

import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click
from msgspec import Struct

from ropewalk.cli.backend.bulk_queries import Counted, bulk_queries
from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.queries import Queries, Search, queries_on, unfinished_after
from ropewalk.cli.backend.session import Session, finish, me, open_session
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes import background
from ropewalk.cli.views.console import print_json, print_json_line
from ropewalk.cli.views.progress import View, logs_to, view_for
from ropewalk.cli.views.text import one_line, plain
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidInput
from ropewalk.core.execution import settling
from ropewalk.core.state import ExecutionState
from ropewalk.service.execution_bulk import STATES, BulkOutcome, BulkProgress, BulkVerb

PATIENCE: Final = {BulkVerb.CANCEL: settling.GRACE / SECOND + 10, BulkVerb.RETRY: 5.0}
"""How long this process waits for what it has told (s), if it is the one that executes it."""
_DONE: Final = {BulkVerb.CANCEL: "told to stop", BulkVerb.RETRY: "retried"}
Command = TypeVar("Command", bound=Callable[..., Any])


class WhichExecutions(Struct, frozen=True):
    """The executions meant, as options say it; `workflow` is a name."""

    workflow: str | None
    state: str | None
    search: str | None
    waiting: bool
    is_all: bool
    limit: int | None
    is_dry: bool
    is_sure: bool

    @property
    def is_any(self) -> bool:
        return any((self.workflow, self.state, self.search, self.waiting, self.is_all))


def on_executions(verb: BulkVerb) -> Callable[[Command], Command]:
    """Gives a command EXECUTION and the options that mean many instead; hands it one or the other."""

    def options(command: Command) -> Command:
        @click.argument("execution", required=False)
        @click.option("--workflow", metavar="NAME", help="All of this workflow.")
        @click.option("--state", type=click.Choice(list(STATES[verb]), case_sensitive=False), help="All in this state.")
        @click.option("--search", metavar="TEXT", help="All with this text in id, workflow or error.")
        @click.option("--waiting", is_flag=True, hidden=verb is BulkVerb.RETRY, help="All of which a node waits.")
        @click.option("--all", "is_all", is_flag=True, help=f"All that there are to {verb}.")
        @click.option("--limit", type=click.IntRange(1), help="Of many, at most so many: the oldest.")
        @click.option("--dry-run", "is_dry", is_flag=True, help="Of many, only say how many they are.")
        @click.option("--yes", "is_sure", is_flag=True, help="Of many, do not ask whether that is meant.")
        @wraps(command)
        def with_executions(*arguments: Any, execution: str | None, workflow: str | None, state: str | None,
                            search: str | None, waiting: bool, is_all: bool, limit: int | None, is_dry: bool,
                            is_sure: bool, **more: Any) -> Any:  # fmt: skip
            which = WhichExecutions(workflow, state, search, waiting, is_all, limit, is_dry, is_sure)
            if (execution is None) != which.is_any:
                raise InvalidInput(
                    "name one EXECUTION, or say which ones: --workflow, --state, --search, --waiting, --all"
                )
            return command(*arguments, execution=execution, which=which, **more)

        return with_executions  # type: ignore[return-value]  # the options it adds are taken away again

    return options


def tell_many(project: Project, verb: BulkVerb, which: WhichExecutions, reason: str | None = None) -> Code:
    """Count those that are meant, ask, tell them, and show how it goes."""
    return finish(_told(project, verb, which, reason))


async def _told(project: Project, verb: BulkVerb, which: WhichExecutions, reason: str | None) -> Code:
    # Counted before the store is opened: nothing is executed here while a person thinks about it.
    async with queries_on(project) as queries:
        wanted = await _wanted(queries, which)
        found = await bulk_queries(queries).count_to_tell(verb, wanted)
    if which.is_dry or not found.count:
        return _counted(project, verb, found)
    if not which.is_sure and not _confirmed(verb, found, which.limit):
        view_for(project).say("nothing was changed")
        return Code.OK
    return await _worked_off(project, verb, wanted, which.limit, reason)


async def _wanted(queries: Queries, which: WhichExecutions) -> Search:
    workflow = None if which.workflow is None else await queries.workflow_id(which.workflow)
    state = None if which.state is None else ExecutionState(which.state)
    return Search(workflow=workflow, state=state, search=which.search, waiting=which.waiting)


async def _worked_off(project: Project, verb: BulkVerb, wanted: Search, limit: int | None, reason: str | None) -> Code:
    view, executes = view_for(project), verb is BulkVerb.RETRY
    with logs_to(view):
        opening = open_session(project, executes=executes and not project.has_executors, needs_types=executes)
        async with opening as session:
            told = await _tell(project, session, verb, wanted, limit, reason)
            left = await _left(session, project, verb, told)
            handover = session.handover(project)
        await _hand_over(project, handover, session, view, left, verb)
    counts = Counter(each.outcome for each in told)
    if not project.is_json:
        print(_tally(verb, counts))
    return Code.FAILED if counts[BulkOutcome.REFUSED] else Code.OK


def _counted(project: Project, verb: BulkVerb, found: Counted) -> Code:
    if project.is_json:
        print_json({"count": found.count, "exact": found.is_exact})
    else:
        print(f"{found.words()} to {verb}" if found.count else f"no executions to {verb}")
    return Code.OK


def _confirmed(verb: BulkVerb, found: Counted, limit: int | None) -> bool:
    """Whether a person says yes; where there is none to ask, that has to be said beforehand."""
    of = f"the oldest {limit:,} of " if limit is not None and limit < found.count else ""
    meant = f"{of}{found.words()} execution{'' if found.count == 1 else 's'}"
    if not sys.stdin.isatty():
        raise InvalidInput(f"this would {verb} {meant}, and there is no terminal to ask: say --yes, or --dry-run")
    return click.confirm(f"{verb} {meant}?", default=False, err=True)


async def _tell(project: Project, session: Session, verb: BulkVerb, wanted: Search, limit: int | None,
                reason: str | None) -> list[BulkProgress]:  # fmt: skip
    told = []
    async for each in bulk_queries(session.queries).tell_all(verb, wanted, session.verbs, me(), reason, limit):
        told.append(each)
        if project.is_json:
            print_json_line({"executionId": each.execution, "outcome": each.outcome, "reason": each.reason})
        else:
            print(plain(_line(verb, each)), flush=True)
    return told


def _line(verb: BulkVerb, each: BulkProgress) -> str:
    word = {BulkOutcome.DONE: _DONE[verb], BulkOutcome.SKIPPED: "skipped", BulkOutcome.REFUSED: "refused"}
    line = f"{each.execution}  {word[each.outcome]}"
    return line if each.reason is None else f"{line}: {one_line(each.reason)}"


def _tally(verb: BulkVerb, counts: Counter[BulkOutcome]) -> str:
    words = {BulkOutcome.DONE: _DONE[verb], BulkOutcome.SKIPPED: "skipped", BulkOutcome.REFUSED: "refused"}
    return ", ".join(f"{counts[outcome]:,} {word}" for outcome, word in words.items() if counts[outcome])


async def _left(session: Session, project: Project, verb: BulkVerb, told: list[BulkProgress]) -> list[str]:
    """Those that are not over, though this process executes them and has given them a moment."""
    left = [each.execution for each in told if each.outcome is BulkOutcome.DONE]
    if session.owner is not None or project.has_executors:
        return []
    return await unfinished_after(session.queries, left, PATIENCE[verb])


async def _hand_over(project: Project, handover: Project, session: Session, view: View, left: list[str],
                     verb: BulkVerb) -> None:  # fmt: skip
    if left:
        view.say(f"process {await background.spawn(handover)} goes on with {len(left)} executions")
    if verb is BulkVerb.RETRY and session.owner is not None and not session.owner.is_there:
        view.say(session.owner.words(project))
