"""The judgement over a shared store: the checker's over every log, the tables against the fold, and the ledgers."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import asyncpg
import msgspec
from msgspec import Struct, field

from ropewalk.checker import Effect, History, check, check_together
from ropewalk.core import log
from ropewalk.core.events import Event, RunFailed, RunReturned
from ropewalk.core.plan import Plan, load_plan
from ropewalk.core.rows import Rows, rows
from ropewalk.core.state import ENDED
from tests.fleet.ledgers import Place

_LOG = "select execution, seq, entry from log order by execution, seq"
_EXECUTIONS = "select id, workflow, version, state, started_at, finished_at, error from execution"
_RUNS = "select execution, id, node, item, attempt, state, started_at, finished_at, error from run"
_LETTERS = "select execution, id, run, node, item, attempt, reason, resolution from dead_letter"
_LEFT = ("live", "queue", "inbox", "offer", "event_wait")


class Verdict(Struct):
    """What was found, and what is wrong with it."""

    accepted: int = 0
    effects: int = 0
    repeated: int = 0
    lost_attempts: int = 0
    returned: int = 0
    states: Counter[str] = field(default_factory=Counter)
    histories: dict[str, History] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def attempts(self) -> Counter[int]:
        """How many runs there were of each attempt number."""
        return Counter(run.attempt for each in self.histories.values() for run in rows(each.plan, each.events).runs)


class Tables(Struct):
    """What the store has."""

    logs: dict[str, list[tuple[int, bytes]]]
    executions: dict[str, tuple[Any, ...]]
    plans: dict[tuple[str, int], Plan]
    runs: dict[str, list[tuple[Any, ...]]]
    letters: dict[str, list[tuple[Any, ...]]]
    left: dict[str, list[tuple[Any, ...]]]


async def judge(url: str, place: Place, limits: Mapping[str, int] | None = None, *, is_quiet: bool = True) -> Verdict:
    """Everything that is wrong with a store and with its ledgers; `is_quiet`: and nothing more will happen."""
    tables, effects = await _tables(url), place.effects.read()
    histories = dict(_histories(tables, effects, is_quiet=is_quiet))
    verdict = _counted(place, tables, histories, effects)
    for execution, history in histories.items():
        broken = [str(violation) for violation in check(history)]
        # A log that breaks other rules need not be foldable.
        verdict.violations += broken or list(_differences(tables, execution, rows(history.plan, history.events)))
    verdict.violations += map(str, check_together(list(histories.values()), limits or {}))
    verdict.violations += [*_promises(place, tables, effects), *(_unended(tables) if is_quiet else ())]
    return verdict


async def _tables(url: str) -> Tables:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            versions = await connection.fetch("select workflow, version, document from workflow_version")
            return Tables(
                _grouped(await connection.fetch(_LOG)),
                {row[0]: tuple(row)[1:] for row in await connection.fetch(_EXECUTIONS)},
                {(row[0], row[1]): load_plan(row[2].encode()) for row in versions},
                _grouped(await connection.fetch(_RUNS)),
                _grouped(await connection.fetch(_LETTERS)),
                {name: [tuple(row) for row in await connection.fetch(f"select * from {name}")] for name in _LEFT},
            )
    finally:
        await connection.close()


def _grouped(found: list[Any]) -> dict[str, list[tuple[Any, ...]]]:
    groups: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in found:
        groups[row[0]].append(tuple(row)[1:])
    return groups


def _histories(tables: Tables, effects: list[Effect], *, is_quiet: bool) -> Iterator[tuple[str, History]]:
    mine: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        mine[effect.execution].append(effect)
    for execution, (workflow, version, *_) in tables.executions.items():
        plan = tables.plans.get((workflow, version))
        if plan is None:
            continue  # a version that is gone takes its logs' meaning along
        try:
            seqs, events = _decoded(tables.logs.get(execution, []))
        except msgspec.DecodeError:
            continue  # the test has spoilt the log on purpose
        if events:
            yield execution, History(plan, events, seqs, mine[execution], is_quiescent=is_quiet)


def _decoded(entries: list[tuple[int, bytes]]) -> tuple[list[int], list[Event]]:
    seqs: list[int] = []
    events: list[Event] = []
    for first, entry in entries:
        _, some = log.decode(entry)
        events += some
        seqs += range(first, first + len(some))
    return seqs, events


def _counted(place: Place, tables: Tables, histories: dict[str, History], effects: list[Effect]) -> Verdict:
    events = [event for history in histories.values() for event in history.events]
    once = {(effect.execution, effect.node, effect.item) for effect in effects}
    return Verdict(
        accepted=len(place.clients.read()),
        effects=len(effects),
        repeated=len(effects) - len(once),
        lost_attempts=sum(isinstance(event, RunFailed) and event.lost for event in events),
        returned=sum(isinstance(event, RunReturned) for event in events),
        states=Counter(row[2] for row in tables.executions.values()),
        histories=histories,
    )


# The tables, against the fold of the log


def _differences(tables: Tables, execution: str, made: Rows) -> Iterator[str]:
    """I-36: where a table says other than the log."""
    row = made.execution
    assert row is not None, "a log begins with the acceptance"
    pairs: dict[str, tuple[Any, Any]] = {
        "execution": (tables.executions[execution][2:], (str(row.state), row.started, row.finished, row.error)),
        "runs": (sorted(tables.runs.get(execution, [])), sorted(_runs_of(made))),
        "letters": (sorted(tables.letters.get(execution, [])), sorted(_letters_of(made))),
    }
    for table, (known, expected) in pairs.items():
        if known != expected:
            yield f"I-36 {execution} {table}: {known} was kept, the log makes it {expected}"


def _runs_of(made: Rows) -> Iterator[tuple[Any, ...]]:
    for run in made.runs:
        if run.finished is not None:
            error = None if run.error is None else run.error.message
            yield (run.id, run.node, run.item, run.attempt, str(run.state), run.started, run.finished, error)


def _letters_of(made: Rows) -> Iterator[tuple[Any, ...]]:
    for letter in made.letters:
        yield (letter.id, letter.run, letter.node, letter.item, letter.attempt, letter.reason, str(letter.resolution))


# The ledgers


def _promises(place: Place, tables: Tables, effects: list[Effect]) -> Iterator[str]:
    """I-35: what was accepted is there; I-32: an execution that was seen at work exists."""
    known = tables.executions
    for answer in place.clients.read():
        if answer.execution not in known:
            yield f"I-35 {answer.execution} ({answer.kind}) was accepted and is lost"
    for stranger in dict.fromkeys(effect.execution for effect in effects):
        if stranger not in known:
            yield f"I-32 {stranger} was seen at work and does not exist"


def _unended(tables: Tables) -> Iterator[str]:
    """I-04: everything has ended and leaves nothing behind that could start it again."""
    for execution, (_, _, state, *_) in tables.executions.items():
        if state not in ENDED:
            yield f"I-04 {execution} is {state} and nothing more will happen"
    for table, left in tables.left.items():
        if left:
            yield f"{len(left)} rows were left in {table}, the first: {left[0]}"
