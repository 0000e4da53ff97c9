"""Commands that start an execution or let it go on: which process executes it, and what the command prints.

An idle store is executed on by this command, with a view, to the end; or by a background process (`--detach`). A store
that another process executes on is told, and that process goes on. A command that ends while executions which other
commands handed in are unfinished leaves them to a background process. A command that watches an owner takes its place
if the owner goes away.

On a shared store the workers go on. `run`, `rerun` and `replay`, which start an execution, are one of them until it is
over: they must not depend on others. Everything else tells, leaves the work to the workers, and says so if there is
none. A server goes on by itself.
"""

from collections.abc import Awaitable, Callable

import click
from msgspec import Struct

from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.session import Executor, Session, finish, open_session
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes import background
from ropewalk.cli.processes.watching import Interrupts, interrupts, watch
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.outcome import show_outcome, unfinished
from ropewalk.cli.views.progress import View, logs_to, now, view_for
from ropewalk.core.errors import Unavailable
from ropewalk.core.state import ExecutionState
from ropewalk.modules import Catalogue

Act = Callable[[Session], Awaitable[str]]

detach_option = click.option("--detach", is_flag=True, help="Let a background process go on with it; print its pid.")


class Mode(Struct, frozen=True):
    """How the execution goes on; `original` is the execution whose output is compared with its own.

    `joins`: on a shared store, this process is a worker meanwhile.
    """

    detach: bool = False
    creates: bool = False
    watches_owner: bool = False
    joins: bool = False
    known: Catalogue | None = None
    original: str | None = None


class Opening(Struct, frozen=True):
    """What came of one opening of the store; `has_seen_end` is false if its owner went away first.

    `heir` is what a process works on that goes on with what was handed in. `is_held`: the execution was told, and
    stays paused.
    """

    execution: str
    owner: Executor | None
    has_seen_end: bool = True
    handed_in: int = 0
    handover: Project | None = None
    is_held: bool = False


def attach(project: Project, act: Act, mode: Mode = Mode()) -> Code:  # noqa: B008 -- frozen
    """Let an execution go on (`act` does, and names it); stay attached to its end, or leave it to its executor."""
    return finish(_detached(project, act, mode) if mode.detach else _attached(project, act, mode))


async def _detached(project: Project, act: Act, mode: Mode) -> Code:
    opening = open_session(project, executes=False, needs_types=True, known=mode.known, creates=mode.creates)
    async with opening as session:
        execution = await act(session)
        owner, handover = session.owner, session.handover(project)
    return _told(project, execution, owner or Executor(await background.spawn(handover)))


async def _attached(project: Project, act: Act, mode: Mode) -> Code:
    view, began = view_for(project), now()
    # What fails is an event, and shown as such.
    with logs_to(view, tells_failures=False), interrupts(view) as asked:
        outcome = await _opened(project, act, mode, view, asked, began)
        while not outcome.has_seen_end:
            view.say("the process that executed it went away; going on here")
            outcome = await _opened(project, _named(outcome.execution), mode, view, asked, now())
        if outcome.handed_in:
            pid = await background.spawn(outcome.handover or project)
            view.say(f"process {pid} goes on with {outcome.handed_in} executions that others handed in meanwhile")
    if outcome.is_held:
        return _held(project, outcome.execution)
    if outcome.owner is not None and not _is_watched(outcome.owner, mode):
        return _told(project, outcome.execution, outcome.owner)
    return await show_outcome(project, outcome.execution, view, outcome.owner, mode.original)


def _is_watched(owner: Executor, mode: Mode) -> bool:
    """Whether the command waits for the end: not if no process executes the execution."""
    return mode.watches_owner and owner.is_there


def _named(execution: str) -> Act:
    async def act(session: Session) -> str:
        return execution

    return act


async def _opened(project: Project, act: Act, mode: Mode, view: View, asked: Interrupts, since: int) -> Opening:
    """Open the store, let the execution go on, and watch it if this process executes it or `mode` asks for it."""
    executes = mode.joins or not project.is_shared
    opening = open_session(project, executes=executes, needs_types=True, known=mode.known, creates=mode.creates)
    async with opening as session:
        before = [] if project.has_executors else await unfinished(session.queries)
        execution = await act(session)
        if session.owner is None:
            # No node of a paused execution starts, so its end would not come.
            if await session.queries.state(execution) is ExecutionState.PAUSED:
                return Opening(execution, None, is_held=True)
            await watch(session, execution, view, asked, since)
            handed_in = await _handed_in(project, session, [*before, execution])
            return Opening(execution, None, handed_in=handed_in, handover=session.handover(project))
        if not _is_watched(session.owner, mode):
            return Opening(execution, session.owner)
        try:
            await watch(session, execution, view, asked, since)
        except Unavailable:
            return Opening(execution, session.owner, has_seen_end=project.has_executors)
        return Opening(execution, session.owner)


async def _handed_in(project: Project, session: Session, known: list[str]) -> int:
    """How many executions came in meanwhile that no other process executes."""
    if project.has_executors:
        return 0
    return sum(each not in known for each in await unfinished(session.queries))


def _held(project: Project, execution: str) -> Code:
    if project.is_json:
        print_json({"executionId": execution, **Executor().json(project)})
    else:
        print(execution)
        view_for(project).say("recorded, and still PAUSED; go on with", project.hint("resume", execution))
    return Code.OK


def _told(project: Project, execution: str, owner: Executor) -> Code:
    if project.is_json:
        print_json({"executionId": execution, **owner.json(project)})
    else:
        print(execution)
        see = project.hint("executions", "show", execution) if owner.is_there else ""
        view_for(project).say(f"{owner.words(project)}; see" if see else owner.words(project), see)
    return Code.OK
