"""Why something does not run in an execution that is closed, or was."""

from tests.engines.scenarios.closing import BROKEN, saga, undoing
from tests.engines.worlds import World, act, node
from tests.service.explanations import GATE, at_the_gate, explained, world
from tests.service.told import codes, node_codes

__all__ = ["world"]


async def test_what_closes_an_execution_is_told_with_its_outcome_and_its_turn(world: World):
    execution = await at_the_gate(world, saga(undoing("u"), BROKEN, last=({**GATE, "id": "held"}, act("last"))))

    answer = await explained(world, execution)

    assert codes(answer) == ["RUNNING", "CLOSING"]
    reason = answer["reasons"][1]
    assert reason["waitsFor"] == {"outcome": "FAILED", "nodes": ["held", "last"], "until": None}
    assert "its outcome is FAILED" in reason["why"]
    assert (await world.details(execution))["outcome"] == "FAILED"
    assert node_codes(answer) == [("broken", "FAILED"), ("held", "RUNNING"), ("last", "CLOSING")]


async def test_before_the_end_what_closes_waits_for_it(world: World):
    execution = await at_the_gate(world, saga(node("a", "gate"), last=(act("last"),)))

    answer = await explained(world, execution)

    assert node_codes(answer) == [("a", "RUNNING"), ("last", "CLOSING")]
    assert (await world.details(execution))["outcome"] is None


async def test_what_has_undone_something_is_not_said_to_be_retried(world: World):
    ended = await world.run(saga(undoing("a"), BROKEN, last=(act("last", fails=9, kind="PERMANENT"),)))

    answer = await explained(world, ended.execution)

    (reason,) = answer["reasons"]
    assert "it has undone a" in reason["action"]
    assert "retry" not in (reason["command"] or "")
    assert [(each["id"], each["command"]) for each in answer["nodes"]] == [("broken", None), ("last", None)]
    assert answer["nodes"][1]["why"].startswith("failed, and the outcome stands")
