"""What all verbs that start something or let it go on have in common: who carries it on, and how that is told.

An idle store is executed on by this command, with a view, to the end; or by a background process (`--detach`). A store
that another process executes on is told, and that process goes on. Whoever leaves while something that others handed
in is unfinished leaves it to a background process; whoever watches an owner that goes away takes its place.

On a shared store the workers go on. `run`, `rerun` and `replay`, which start an execution, are one of them until it is
over: they must not depend on others. Everything else tells, leaves the work to the workers, and says so if there is
none. A server goes on by itself.
"""

from collections.abc import Awaitable, Callable

import click
from msgspec import Struct

from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.session import Executor, Session, finish, opened
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes import background
from ropewalk.cli.processes.watching import Interrupts, interrupts, watch
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.outcome import conclude, unfinished
from ropewalk.cli.views.progress import View, logs_to, now, view_for
from ropewalk.core.errors import Unavailable
from ropewalk.core.state import ExecutionState
from ropewalk.modules import Catalogue

Act = Callable[[Session], Awaitable[str]]

detach_option = click.option("--detach", is_flag=True, help="Let a background process go on with it; print its pid.")


class Way(Struct, frozen=True):
    """How it is carried on; `original` is the execution whose output is compared with what comes out.

    `joins`: on a shared store, this process is a worker meanwhile.
    """

    detach: bool = False
    creates: bool = False
    watches_owner: bool = False
    joins: bool = False
    known: Catalogue | None = None
    original: str | None = None


class Turn(Struct, frozen=True):
    """What came of one opening of the store; `has_seen_end` is false if its owner went away first.

    `heir` is what a process works on that goes on with what was handed in. `is_held`: the execution was told, and
    stays paused.
    """

    execution: str
    owner: Executor | None
    has_seen_end: bool = True
    handed_in: int = 0
    heir: Project | None = None
    is_held: bool = False


def carry_on(project: Project, act: Act, way: Way = Way()) -> Code:  # noqa: B008 -- frozen
    """Do what lets an execution go on (`act` names it), then see it through as far as that is ours to do."""
    return finish(_detached(project, act, way) if way.detach else _attended(project, act, way))


async def _detached(project: Project, act: Act, way: Way) -> Code:
    opening = opened(project, executes=False, brings_types=True, known=way.known, creates=way.creates)
    async with opening as session:
        execution = await act(session)
        owner, heir = session.owner, session.heir(project)
    return _told(project, execution, owner or Executor(await background.spawn(heir)))


async def _attended(project: Project, act: Act, way: Way) -> Code:
    view, began = view_for(project), now()
    # What fails is an event, and shown as such.
    with logs_to(view, tells_failures=False), interrupts(view) as asked:
        turn = await _turn(project, act, way, view, asked, began)
        while not turn.has_seen_end:
            view.say("the process that executed it went away; going on here")
            turn = await _turn(project, _named(turn.execution), way, view, asked, now())
        if turn.handed_in:
            pid = await background.spawn(turn.heir or project)
            view.say(f"process {pid} goes on with {turn.handed_in} executions that others handed in meanwhile")
    if turn.is_held:
        return _held(project, turn.execution)
    if turn.owner is not None and not _is_watched(turn.owner, way):
        return _told(project, turn.execution, turn.owner)
    return await conclude(project, turn.execution, view, turn.owner, way.original)


def _is_watched(owner: Executor, way: Way) -> bool:
    """Nobody waits for what nobody executes."""
    return way.watches_owner and owner.is_there


def _named(execution: str) -> Act:
    async def act(session: Session) -> str:
        return execution

    return act


async def _turn(project: Project, act: Act, way: Way, view: View, asked: Interrupts, since: int) -> Turn:
    """Open the store, let the execution go on, and watch it if that is ours to do."""
    executes = way.joins or not project.is_shared
    opening = opened(project, executes=executes, brings_types=True, known=way.known, creates=way.creates)
    async with opening as session:
        before = [] if project.is_attended else await unfinished(session.look)
        execution = await act(session)
        if session.owner is None:
            # Nothing of a paused one goes on, so there is nothing to wait for.
            if await session.look.state(execution) is ExecutionState.PAUSED:
                return Turn(execution, None, is_held=True)
            await watch(session, execution, view, asked, since)
            handed_in = await _handed_in(project, session, [*before, execution])
            return Turn(execution, None, handed_in=handed_in, heir=session.heir(project))
        if not _is_watched(session.owner, way):
            return Turn(execution, session.owner)
        try:
            await watch(session, execution, view, asked, since)
        except Unavailable:
            return Turn(execution, session.owner, has_seen_end=project.is_attended)
        return Turn(execution, session.owner)


async def _handed_in(project: Project, session: Session, known: list[str]) -> int:
    """How much came in meanwhile that nobody else goes on with."""
    if project.is_attended:
        return 0
    return sum(each not in known for each in await unfinished(session.look))


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
