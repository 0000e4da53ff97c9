"""The judgement over a store that came to rest: the audit's, and the promises made to those outside."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from msgspec import Struct, field

from ropewalk.checker import Effect, History
from ropewalk.core.events import Event, RunFailed, RunReturned, RunWaiting
from ropewalk.core.state import ENDED, ExecutionState
from ropewalk.core.waits import ChildWait
from ropewalk.service.auditing import Audit
from ropewalk.store import executions
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.sqlite import SqliteReader
from tests.crash.ledgers import Place


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
    """One execution: its row, and its log."""

    row: executions.Execution
    history: History

    def children(self) -> list[str]:
        """The executions its log says it waited for."""
        waits = [event.wait for event in self.history.events if isinstance(event, RunWaiting)]
        return sorted(wait.child for wait in waits if isinstance(wait, ChildWait))


async def judge(place: Place) -> Verdict:
    """Everything that is wrong with a store that came to rest, and with its ledgers."""
    effects = place.effects.read()
    reader = await SqliteReader.open(place.database)
    try:
        stories, violations = await _audited(reader, place, effects)
    finally:
        await reader.close()
    verdict = _counted(place, stories, effects)
    verdict.violations += [*violations, *_promises(place, stories), *_family(stories)]
    return verdict


async def _audited(reader: SqliteReader, place: Place, effects: list[Effect]) -> tuple[list[Story], list[str]]:
    seen: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        seen[effect.execution].append(effect)
    audit = Audit(reader, at_rest=True, effects=seen, load_blob=BlobFiles(f"{place.database}.blobs").get)
    stories: list[Story] = []
    violations: list[str] = []
    async for each in audit.executions():
        violations += map(str, each.violations)
        row = await executions.load(reader, each.id)
        if row is not None and each.history is not None:
            stories.append(Story(row, each.history))
    return stories, violations + [str(each) for each in await audit.together()]


def _counted(place: Place, stories: list[Story], effects: list[Effect]) -> Verdict:
    events: list[Event] = [event for story in stories for event in story.history.events]
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
            yield f"I-32 {story.row.id} succeeded and no effect of it was seen"


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
