"""Working off a whole store: whatever is unfinished goes on, until nothing can any more."""

import asyncio
from typing import Final

from ropewalk.cli import background
from ropewalk.cli.codes import Code, code_for
from ropewalk.cli.concluding import MOST_COUNTED, unfinished
from ropewalk.cli.console import print_json
from ropewalk.cli.project import Project
from ropewalk.cli.session import WORKSPACE, Executor, Session, me, opened, reading_from
from ropewalk.cli.view import View, logs_to, view_for
from ropewalk.cli.watching import interrupts
from ropewalk.core.state import ExecutionState
from ropewalk.store import executions

_PAUSE: Final = 0.2


async def work_off(project: Project, *, wakes_paused: bool) -> Code:
    """Execute until nothing is left that could go on by itself; on a shared store, leave that to the workers."""
    if project.is_shared:
        return await detached(project)
    view = view_for(project)
    with logs_to(view), interrupts(view) as asked:
        async with opened(project) as session:
            if wakes_paused:
                await _wake_paused(session)
            begun = await unfinished(session.reader)
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
    verdict = await _verdict(project, begun)
    return verdict if is_done else Code.INTERRUPTED


async def detached(project: Project) -> Code:
    """Let a background process do it, or the workers where there are some."""
    async with opened(project, executes=False) as session:
        await _wake_paused(session)
        owner = session.owner
        begun = await unfinished(session.reader)
    owner = owner or Executor(await background.spawn(project))
    if project.is_json:
        print_json(owner.json(project))
    else:
        print(f"{_count(begun)}: {owner.words(project)}" if project.is_shared else owner.pid)
    return Code.OK


async def _wake_paused(session: Session) -> None:
    """Let everything paused go on; children follow their parents."""
    paused = executions.Filter(state=ExecutionState.PAUSED)
    for row in await executions.listed(session.reader, WORKSPACE, paused, limit=MOST_COUNTED):
        if row.parent is None:
            await session.verbs.resume(row.id, me())


async def _until_done(session: Session, view: View) -> None:
    """Nobody tells when the last one of a store is over, so this looks from time to time."""
    last = None
    while left := await unfinished(session.reader):
        if last is not None and len(left) != last:
            view.say(_count(left))
        last = len(left)
        await asyncio.sleep(_PAUSE)


def _count(ids: list[str]) -> str:
    return f"{len(ids)}{'+' if len(ids) >= MOST_COUNTED else ''} unfinished execution{'' if len(ids) == 1 else 's'}"


async def _verdict(project: Project, begun: list[str]) -> Code:
    """How those ended that were unfinished at the beginning; the worst of them counts."""
    async with reading_from(project) as reader:
        rows = [await executions.load(reader, each) for each in begun]
    states = [ExecutionState(row.state) for row in rows if row is not None]
    if project.is_json:
        print_json([{"id": row.id, "state": row.state} for row in rows if row is not None])
    codes = [code_for(state) for state in states]
    return next((code for code in (Code.FAILED, Code.STOPPED) if code in codes), Code.OK)
