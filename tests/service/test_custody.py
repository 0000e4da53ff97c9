"""Only the engine knows which worker holds an execution, what is wrong with that, and what else it keeps of it."""

from collections.abc import Iterator, Sequence

from ropewalk.core.duration import DAY
from ropewalk.engines.base import Holding
from ropewalk.engines.custody import StoredCustody
from ropewalk.service.auditing import Audit
from ropewalk.service.retention import Policy, sweep
from ropewalk.store.access import Reader
from ropewalk.store.auditing import Kept
from ropewalk.store.rows import LiveRow
from tests.engines.worlds import World, act, flow
from tests.service.explanations import at_the_gate, explained


class OtherCustody(StoredCustody):
    """The custody of an engine whose workers are not in the store."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    async def holding(self, reader: Reader, live: LiveRow) -> Holding:
        return Holding("worker of another engine")

    def faults(self, kept: Kept, *, at_rest: bool) -> Iterator[str]:
        yield "it is held twice"

    async def strangers(self, reader: Reader, most: int) -> list[tuple[str, str]]:
        return [("an execution", "a worker")]

    async def forget(self, executions: Sequence[str]) -> None:
        self.forgotten += executions


async def test_an_explanation_names_the_worker_that_the_engine_says_holds_the_execution(world: World):
    execution = await at_the_gate(world)

    said = await explained(world, execution, custody=OtherCustody())

    assert {reason["waitsFor"].get("worker") for reason in said["reasons"]} == {"worker of another engine"}


async def test_a_check_tells_what_the_engine_says_is_wrong_with_how_an_execution_is_held(world: World):
    await at_the_gate(world)
    audit = Audit(world.service.store, custody=OtherCustody())

    found = [violation.message async for each in audit.executions() for violation in each.violations]
    together = [violation.message for violation in await audit.together()]

    assert found == ["it is held twice"]
    assert together == ["worker a worker owns it, and does not exist"]


async def test_the_engine_is_told_which_executions_retention_has_removed(world: World):
    ended, custody, store = await world.run(flow(act("a", 1))), OtherCustody(), world.service.store

    removed = await sweep(store, store.now() + 31 * DAY, Policy(), custody=custody)

    assert (removed.executions, custody.forgotten) == (1, [ended.execution])
