"""Resuming all executions of a store: what is unfinished goes on, until no execution can go on by itself."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.queries import Search, queries_on
from ropewalk.cli.backend.session import Executor, Session, me, open_session
from ropewalk.cli.exit_codes import Code, code_for
from ropewalk.cli.processes import background
from ropewalk.cli.processes.watching import interrupts
from ropewalk.cli.views.console import console, print_json
from ropewalk.cli.views.logs import logging_as
from ropewalk.cli.views.outcome import MOST_COUNTED, unfinished
from ropewalk.cli.views.progress import LogView, View, logs_to, view_for
from ropewalk.core.state import ExecutionState

_PAUSE: Final = 0.2


async def resume_all(project: Project, *, wakes_paused: bool, is_background: bool = False) -> Code:
    """Execute until nothing is left that could go on by itself; where others execute, leave that to them."""
    if project.has_executors:
        return await resume_all_detached(project)
    with _logging(project, is_background) as view, interrupts(view) as asked:
        async with open_session(project, needs_types=True) as session:
            if wakes_paused:
                await _wake_paused(session)
            begun = await unfinished(session.queries)
            view.say(_count(begun))
            stopped = asyncio.ensure_future(asked.wait())
            working = asyncio.ensure_future(_until_done(session, view))
            await asyncio.wait((stopped, working), return_when=asyncio.FIRST_COMPLETED)
            is_done = working.done()
            if is_done:
                working.result()
            for task in (stopped, working):
                task.cancel()
            await asyncio.gather(stopped, working, return_exceptions=True)
    verdict = await _verdict(project, view, begun)
    return verdict if is_done else Code.INTERRUPTED


@contextmanager
def _logging(project: Project, is_background: bool) -> Iterator[View]:
    """Tells a person how it goes; a process in the background logs as a worker does, in the form that is set."""
    if is_background:
        log = LogView(console(is_error=True), is_json=project.is_json)
        with logging_as(project.settings.telemetry.log, log):
            yield log
        return
    view = view_for(project)
    with logs_to(view):
        yield view


async def resume_all_detached(project: Project) -> Code:
    """Let a background process do it, or the workers where there are some."""
    async with open_session(project, executes=False, needs_types=True) as session:
        await _wake_paused(session)
        owner = session.owner
        begun = await unfinished(session.queries)
        handover = session.handover(project)
    owner = owner or Executor(await background.spawn(handover))
    if project.is_json:
        print_json(owner.json(project))
    else:
        print(f"{_count(begun)}: {owner.words(project)}" if project.has_executors else owner.pid)
    return Code.OK


async def _wake_paused(session: Session) -> None:
    """Let everything paused go on; children follow their parents."""
    for each in await session.queries.executions(Search(state=ExecutionState.PAUSED, limit=MOST_COUNTED)):
        if each["parentExecutionId"] is None:
            await session.verbs.resume(each["id"], me())


async def _until_done(session: Session, view: View) -> None:
    """Look from time to time whether all are over: the store has no notice for the end of the last one."""
    last = None
    while left := await unfinished(session.queries):
        if last is not None and len(left) != last:
            view.say(_count(left))
        last = len(left)
        await asyncio.sleep(_PAUSE)


def _count(ids: list[str]) -> str:
    return f"{len(ids)}{'+' if len(ids) >= MOST_COUNTED else ''} unfinished execution{'' if len(ids) == 1 else 's'}"


async def _verdict(project: Project, view: View, begun: list[str]) -> Code:
    """How those ended that were unfinished at the beginning; the worst of them counts."""
    async with queries_on(project) as queries:
        found = {each: await queries.state(each) for each in begun}
    states = {each: state for each, state in found.items() if state is not None}
    if project.is_json:
        print_json([{"id": each, "state": state} for each, state in states.items()])
    else:
        for each, state in states.items():
            view.say(f"{each}: {state}")
    codes = [code_for(state) for state in states.values()]
    return next((code for code in (Code.FAILED, Code.STOPPED) if code in codes), Code.OK)
