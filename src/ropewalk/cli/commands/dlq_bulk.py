"""Many dead letters at once: which are meant, and what became of each.

An idle store is executed on by this command while it requeues; what is not over soon after is left to a background
process. On a store that another process executes on, that process is asked for one letter after the other; on a shared
store the workers go on with what was requeued; a server works them off by itself.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import Any, Final, TypeVar

import click
from msgspec import Struct

from ropewalk.cli.backend.ids import whole_fingerprint
from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.queries import unfinished_after
from ropewalk.cli.backend.session import Session, finish, me, open_session
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes import background
from ropewalk.cli.views.console import print_json_line
from ropewalk.cli.views.dlq import progress_line, tally
from ropewalk.cli.views.progress import logs_to, view_for
from ropewalk.cli.views.text import plain
from ropewalk.core.errors import InvalidInput, Unavailable
from ropewalk.core.state import GaveUp
from ropewalk.service.dead_letter_bulk import Outcome, Pace, Progress
from ropewalk.store.dlq import Wanted

PATIENCE: Final = 5.0
Command = TypeVar("Command", bound=Callable[..., Any])
Work = Callable[[Session, Wanted], AsyncIterator[Progress]]


class WhichLetters(Struct, frozen=True):
    """The letters meant, as options say it; `workflow` is a name."""

    fingerprint: str | None
    workflow: str | None
    node: str | None
    failure_type: str | None
    limit: int | None

    @property
    def is_any(self) -> bool:
        return any((self.fingerprint, self.workflow, self.node, self.failure_type))


def on_letters(command: Command) -> Command:
    """Gives a command LETTER and the options that mean many instead; hands it one or the other, and the limit."""

    @click.argument("letter", required=False)
    @click.option("--fingerprint", help="All that failed alike; `dlq groups` tells.")
    @click.option("--workflow", metavar="NAME", help="All of this workflow.")
    @click.option("--node", "place", metavar="NODE", help="All of this node.")
    @click.option("--failure-type", type=click.Choice(list(GaveUp), case_sensitive=False), help="All that failed so.")
    @click.option("--limit", type=click.IntRange(1), help="Of many, at most so many: the oldest.")
    @wraps(command)
    def with_letters(*arguments: Any, letter: str | None, fingerprint: str | None, workflow: str | None,
                     place: str | None, failure_type: str | None, limit: int | None, **more: Any) -> Any:  # fmt: skip
        which = WhichLetters(fingerprint, workflow, place, failure_type, limit)
        if (letter is None) != which.is_any:
            raise InvalidInput("name one LETTER, or say which ones: --fingerprint, --workflow, --node, --failure-type")
        return command(*arguments, letter=letter, which=which, **more)

    return with_letters  # type: ignore[return-value]  # the options it adds are taken away again


def requeue_many(project: Project, which: WhichLetters, rate: float | None, stop_after_failures: int | None) -> Code:
    """Try all of these again, and show how it goes."""
    pace = Pace(rate=rate, stop_after_failures=stop_after_failures, limit=which.limit)

    def work(session: Session, wanted: Wanted) -> AsyncIterator[Progress]:
        return session.queries.requeue_all(session.verbs, wanted, pace, me())

    return finish(_worked_off(project, which, work, stops=stop_after_failures is not None))


def discard_many(project: Project, which: WhichLetters, notes: str | None) -> Code:
    """Close all of these, and show how it goes."""

    def work(session: Session, wanted: Wanted) -> AsyncIterator[Progress]:
        return session.queries.discard_all(session.verbs, wanted, me(), notes, which.limit)

    return finish(_worked_off(project, which, work, executes=False))


async def _worked_off(project: Project, which: WhichLetters, work: Work, *, executes: bool = True,
                      stops: bool = False) -> Code:  # fmt: skip
    view = view_for(project)
    seen: Counter[Outcome] = Counter()
    requeued: dict[str, None] = {}
    # What fails again is told letter by letter.
    with logs_to(view, tells_failures=False):
        opening = open_session(project, executes=executes and not project.has_executors, needs_types=executes)
        async with opening as session:
            _require_executor(project, session, stops)
            async for progress in work(session, await _wanted(session, which)):
                _show(project, progress)
                seen[progress.outcome] += 1
                if progress.outcome is Outcome.REQUEUED:
                    requeued[progress.execution] = None
            left = await unfinished_after(session.queries, list(requeued), PATIENCE) if session.owner is None else []
            handover = session.handover(project)
        if requeued and session.owner is not None and not session.owner.is_there:
            view.say(session.owner.words(project))
        if left:
            view.say(f"process {await background.spawn(handover)} goes on with {len(left)} executions")
    if not project.is_json:
        print(tally(seen))
    return Code.FAILED if seen[Outcome.STOPPED] or seen[Outcome.REFUSED] else Code.OK


def _require_executor(project: Project, session: Session, stops: bool) -> None:
    """Refuse to count failures where no process executes: none would come, and the command would wait for ever."""
    if stops and session.owner is not None and not session.owner.is_there:
        raise Unavailable(session.owner.words(project))


async def _wanted(session: Session, which: WhichLetters) -> Wanted:
    workflow = None if which.workflow is None else await session.queries.workflow_id(which.workflow)
    alike = await whole_fingerprint(session.queries, which.fingerprint)
    return Wanted(fingerprint=alike, workflow=workflow, node=which.node, failure_type=which.failure_type)


def _show(project: Project, progress: Progress) -> None:
    if project.is_json:
        about = {"letterId": progress.letter, "executionId": progress.execution}
        print_json_line({**about, "outcome": progress.outcome, "reason": progress.reason})
    else:
        print(plain(progress_line(progress)), flush=True)
