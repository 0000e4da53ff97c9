"""`now`, `uuid()` and `random()`: drawn once per node, the same in retries and in a replay, new after a reopening."""

from typing import Any
from uuid import RFC_4122, UUID

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidDefinition
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import inputs_of, items_of
from ropewalk.core.expression.chance import Chance
from ropewalk.core.signals import Due, Requeue, Start
from tests.core.executions import NOON, accepted, bad, mapped, ok, refolded, tell, workflow
from tests.core.node_types import NODE_TYPES

DRAWN = {"at": "{{ now }}", "id": "{{ uuid() }}", "chance": "{{ random() }}"}
NODES: list[dict[str, Any]] = [{"id": "a", "with": DRAWN, "retry": {"maxAttempts": 2, "delay": 1}}]


def started(nodes: list[dict[str, Any]] = NODES, *edges: str) -> tuple[Execution, list[Any]]:
    execution = accepted(workflow(nodes, *edges))
    return execution, [execution.accepted, *tell(execution, Start())]


def test_now_is_when_the_node_started():
    execution, _ = started()

    assert inputs_of(execution, execution.works[0])["at"] == "2025-11-15T12:00:00.000000Z"


def test_a_retry_a_repeated_evaluation_and_a_replay_draw_the_same():
    execution, log = started()
    first = inputs_of(execution, execution.works[0])

    log += tell(execution, bad("a"), at=NOON + SECOND)
    log += tell(execution, Due(), at=NOON + 60 * SECOND)

    assert execution.works[0].attempt == 2
    assert inputs_of(execution, execution.works[0]) == first
    assert inputs_of(refolded(execution, log), execution.works[0]) == first


def test_a_requeued_node_draws_anew():
    execution, _ = started([{**NODES[0], "retry": {"maxAttempts": 1}}])
    first = inputs_of(execution, execution.works[0])
    tell(execution, bad("a"), at=NOON + SECOND)

    tell(execution, Requeue("a", "me"), Start(), at=NOON + 60 * SECOND)
    again = inputs_of(execution, execution.works[0])

    assert again["at"] == "2025-11-15T12:01:00.000000Z"
    assert again["id"] != first["id"]


def test_executions_that_go_the_same_way_draw_each_its_own():
    plan = workflow([{"id": "a"}, {"id": "b", "with": DRAWN}], "a->b")
    seen = []
    for place in range(3):
        execution = accepted(plan)
        tell(execution, Start(), at=NOON)
        tell(execution, ok("a"), at=NOON + place * SECOND)
        seen.append(inputs_of(execution, execution.works[1])["at"])

    assert len(set(seen)) == 3


def test_each_item_of_a_map_and_its_list_draw_their_own():
    plan = workflow([{"id": "m", "forEach": "{{ [uuid(), uuid()] }}", "with": DRAWN}])
    execution = mapped(plan, 2)
    items = items_of(execution, 0)
    drawn = [inputs_of(execution, execution.maps[0].works[item], items[item])["id"] for item in range(2)]

    assert len({*items, *drawn}) == 4
    assert items_of(execution, 0) == items


@pytest.mark.parametrize("name", ["now", "uuid()", "random()"])
@pytest.mark.parametrize("field", ["output", "concurrencyKey"])
def test_what_is_not_recorded_with_a_node_cannot_draw(name: str, field: str):
    document = {"ropewalk": 1, "name": "w", "nodes": [], field: f"{{{{ {name} }}}}"}

    with pytest.raises(InvalidDefinition) as caught:
        parse_definition(document, NODE_TYPES)

    problems = caught.value.problems
    assert [each.path for each in problems] == [(field,)]
    assert f"cannot use {name.rstrip('()')} here" in problems[0].message


def test_a_uuid_reads_like_a_random_one():
    chance = Chance(NOON, "seed")
    drawn = [UUID(chance.uuid()) for _ in range(200)]

    assert {each.version for each in drawn} == {4}
    assert {each.variant for each in drawn} == {RFC_4122}
    assert len(set(drawn)) == 200
