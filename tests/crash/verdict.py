"""The judgement over a store that came to rest: the checker's on every log, and the tables against the fold."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from ropewalk.checker import Effect, History, check, check_together
from ropewalk.core import log
from ropewalk.core.events import Event, ExecutionAccepted, RunFailed, RunReturned, RunWaiting
from ropewalk.core.plan import Plan, load_plan
from ropewalk.core.rows import LetterRow, Rows, RunRow, rows
from ropewalk.core.state import ENDED, ExecutionState
from ropewalk.core.waits import ChildWait
from ropewalk.store import dlq, executions, runs, workflows
from ropewalk.store import log as stored_log
from ropewalk.store.sqlite import SqliteReader
from tests.crash.ledgers import Place
from tests.store.samples import ask

PAGE = 500


class Verdict(Struct):
    """What was found, and what is wrong with it."""

    accepted: int = 0
    effects: int = 0
    repeated: int = 0
    lost_attempts: int = 0
    returned: int = 0
    states: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


class Story(Struct):
    """One execution: its row, its log, and the plan it follows."""

    row: executions.Execution
    history: History

    @property
    def accepted(self) -> ExecutionAccepted:
        first = self.history.events[0]
        assert isinstance(first, ExecutionAccepted)
        return first

    def children(self) -> list[str]:
        """The executions its log says it waited for."""
        waits = [event.wait for event in self.history.events if isinstance(event, RunWaiting)]
        return sorted(wait.child for wait in waits if isinstance(wait, ChildWait))


class Archive:
    """Reads a store that nobody owns any more."""

    def __init__(self, reader: SqliteReader, effects: list[Effect]) -> None:
        self._reader = reader
        self._plans: dict[tuple[str, int], Plan] = {}
        self._effects: dict[str, list[Effect]] = defaultdict(list)
        for effect in effects:
            self._effects[effect.execution].append(effect)

    async def stories(self) -> list[Story]:
        """Every execution of the store."""
        found: list[Story] = []
        before = executions.NEWEST
        while page := await executions.listed(self._reader, "default", before=before, limit=PAGE):
            found += [Story(row, await self._history(row)) for row in page]
            before = page[-1].id
        return found

    async def _history(self, row: executions.Execution) -> History:
        events: list[Event] = []
        seqs: list[int] = []
        for first, entry in await stored_log.entries(self._reader, row.id):
            _, some = log.decode(entry)
            events += some
            seqs += range(first, first + len(some))
        return History(await self._plan(row), events, seqs, self._effects.get(row.id, []))

    async def _plan(self, row: executions.Execution) -> Plan:
        key = (row.workflow, row.version)
        if key not in self._plans:
            version = await workflows.get_version(self._reader, *key)
            assert version is not None
            self._plans[key] = load_plan(version.document.encode())
        return self._plans[key]

    async def differences(self, story: Story) -> list[str]:
        """Where the tables say other than the log."""
        made = rows(story.history.plan, story.history.events)
        kept_runs = await runs.listed(self._reader, story.row.id)
        kept_letters = await dlq.of_execution(self._reader, story.row.id)
        tables = {
            "execution": (_execution(story.row), _execution_of(made)),
            "runs": (sorted(map(_run, kept_runs)), sorted(map(_run_of, made.runs))),
            "letters": (sorted(map(_letter, kept_letters)), sorted(map(_letter_of, made.letters))),
        }
        return [
            f"I-36 {story.row.id} {table}: {kept} was kept, the log makes it {known}"
            for table, (kept, known) in tables.items()
            if kept != known
        ]


# Rows of the tables and of the fold, in one form


def _execution(row: executions.Execution) -> tuple[Any, ...]:
    return row.state, row.accepted_at, row.started_at, row.finished_at, row.error, row.parent


def _execution_of(made: Rows) -> tuple[Any, ...]:
    row = made.execution
    assert row is not None
    parent = None if row.parent is None else row.parent.execution
    return str(row.state), row.accepted, row.started, row.finished, row.error, parent


def _run(row: runs.Run) -> tuple[Any, ...]:
    return (row.id, row.node, row.attempt, row.item, row.state, row.started_at, row.finished_at, row.retry_after,
            row.error_type, row.error)  # fmt: skip


def _run_of(row: RunRow) -> tuple[Any, ...]:
    error = (None, None) if row.error is None else (str(row.error.type), row.error.message)
    return (row.id, row.node, row.attempt, row.item, str(row.state), row.started, row.finished, row.retry_after,
            *error)  # fmt: skip


def _letter(row: dlq.DeadLetter) -> tuple[Any, ...]:
    inputs = None if row.inputs is None else msgspec.json.decode(row.inputs)
    return (row.id, row.run, row.node, row.attempt, row.item, row.failure_type, row.reason, row.created_at,
            row.resolution, row.resolved_at, inputs)  # fmt: skip


def _letter_of(row: LetterRow) -> tuple[Any, ...]:
    return (row.id, row.run, row.node, row.attempt, row.item, str(row.type), row.reason, row.created,
            str(row.resolution), row.resolved, row.inputs)  # fmt: skip


# The judgement


async def judge(place: Place) -> Verdict:
    """Everything that is wrong with a store that came to rest, and with its ledgers."""
    effects = place.effects.read()
    reader = await SqliteReader.open(place.database)
    try:
        archive = Archive(reader, effects)
        stories = await archive.stories()
        verdict = _counted(place, stories, effects)
        for story in stories:
            broken = [str(violation) for violation in check(story.history)]
            # A log that breaks other rules need not be foldable.
            verdict.violations += broken or await archive.differences(story)
    finally:
        await reader.close()
    verdict.violations += map(str, check_together([story.history for story in stories], {}))
    verdict.violations += [*_promises(place, stories), *_family(stories), *_leftovers(place)]
    return verdict


def _counted(place: Place, stories: list[Story], effects: list[Effect]) -> Verdict:
    events = [event for story in stories for event in story.history.events]
    once = {(effect.execution, effect.node, effect.item) for effect in effects}
    return Verdict(
        accepted=len(place.clients.read()),
        effects=len(effects),
        repeated=len(effects) - len(once),
        lost_attempts=sum(isinstance(event, RunFailed) and event.lost for event in events),
        returned=sum(isinstance(event, RunReturned) for event in events),
        states=Counter(story.row.state for story in stories),
    )


def _promises(place: Place, stories: list[Story]) -> Iterator[str]:
    """I-35 and I-04: what was accepted is there, and ended; who was seen at work exists, and who succeeded was seen."""
    known = {story.row.id: story for story in stories}
    for answer in place.clients.read():
        if answer.execution not in known:
            yield f"I-35 {answer.execution} ({answer.kind}) was accepted and is lost"
    for stranger in dict.fromkeys(effect.execution for effect in place.effects.read()):
        if stranger not in known:
            yield f"I-32 {stranger} was seen at work and does not exist"
    for story in stories:
        if story.row.state not in ENDED:
            yield f"I-04 {story.row.id} is {story.row.state} and nothing more will happen"
        elif story.row.state == ExecutionState.SUCCESS and not story.history.effects and not story.children():
            yield f"I-32 {story.row.id} succeeded and nobody saw any of it"


def _family(stories: list[Story]) -> Iterator[str]:
    """A child for every wait for one, and no other."""
    born: dict[str, list[str]] = defaultdict(list)
    for story in stories:
        if story.row.parent is not None:
            born[story.row.parent].append(story.row.id)
    for story in stories:
        waited_for, children = story.children(), sorted(born[story.row.id])
        if waited_for != children:
            yield f"{story.row.id} waited for the children {waited_for} and has {children}"


def _leftovers(place: Place) -> Iterator[str]:
    """What is over leaves nothing behind that could start it again."""
    for table in ("live", "queue", "inbox"):
        left = ask(place.database, f"select * from {table}")
        if left:
            yield f"{len(left)} rows were left in {table}, the first: {left[0]}"
