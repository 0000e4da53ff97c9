"""What one version of a workflow changes in another."""

from typing import Any

import pytest

from ropewalk.core.definition.difference import Change, Difference, NodeChange, difference

NOTHING = Difference((), (), (), (), (), ())


def document(**more: Any) -> dict[str, Any]:
    return {"name": "refund", "nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop"}], **more}


def test_the_order_of_nodes_edges_and_keys_makes_no_difference():
    edges = [{"from": "a", "to": "b"}, {"to": "b", "from": "a", "on": "error"}]
    before = document(edges=edges)

    after = {"edges": edges[::-1], "nodes": before["nodes"][::-1], "name": "refund"}

    assert difference(before, after) == NOTHING


def test_a_node_is_added_removed_or_changed_by_its_id():
    before = {"nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "log", "with": {"message": "x"}}]}
    after = {
        "nodes": [{"id": "b", "type": "log", "with": {"message": "y"}, "timeout": "1s"}, {"id": "c", "type": "set"}]
    }

    found = difference(before, after)

    assert found.nodes_added == ({"id": "c", "type": "set"},)
    assert found.nodes_removed == ({"id": "a", "type": "noop"},)
    assert found.nodes_changed == (
        NodeChange("b", (Change("with", {"message": "x"}, {"message": "y"}), Change("timeout", None, "1s"))),
    )


def test_an_edge_that_moves_is_one_less_and_one_more():
    before, after = document(edges=[{"from": "a", "to": "b"}]), document(edges=[{"from": "b", "to": "a"}])

    found = difference(before, after)

    assert (found.edges_removed, found.edges_added) == (({"from": "a", "to": "b"},), ({"from": "b", "to": "a"},))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({"timeout": "1m"}, {"timeout": "2m"}, Change("timeout", "1m", "2m")),
        ({"output": None}, {}, Change("output", None, None)),
        ({"vars": {"a": 1}}, {"vars": {"a": True}}, Change("vars", {"a": 1}, {"a": True})),
        ({}, {"description": "new"}, Change("description", None, "new")),
    ],
)
def test_other_fields_are_told_with_what_they_were_and_are(before: Any, after: Any, change: Change):
    assert difference(document(**before), document(**after)).changes == (change,)
