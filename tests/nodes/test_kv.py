"""`kv.*` and `dedupe` as nodes; what the store does with them is in tests/store."""

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.core.reach import needs
from ropewalk.engines.kept_values import StoredValues
from ropewalk.nodes.base import NodeFailure, Output
from ropewalk.store.sqlite import SqliteStore

SET = {"key": "k", "value": 1}


@pytest.fixture
async def store(facilities, tmp_path):
    opened = await SqliteStore.open(str(tmp_path / "kept.db"))
    facilities.kept_values = StoredValues(opened)
    yield opened
    await opened.close()


async def test_a_value_is_kept_read_and_removed(run, store):
    assert await run("kv.get", {"key": "k", "default": 7}) == Output({"value": 7, "version": None}, ("missing",))

    written = await run("kv.set", {"key": "k", "value": [1], "ttl": "1h"}, idempotency_key="1")
    found = await run("kv.get", {"key": "k"})
    removed = await run("kv.delete", {"key": "k", "ifVersion": written.value["version"]}, idempotency_key="2")

    assert (written.ports, found.ports, removed.ports) == (("written",), ("found",), ("deleted",))
    assert written.value == found.value == {"value": [1], "version": written.value["version"]}
    assert removed.value == {"value": None, "version": None}
    assert (await run("kv.delete", {"key": "k"}, idempotency_key="3")).ports == ("unchanged",)


async def test_a_value_that_has_changed_is_a_conflict_that_tells_what_is_kept(run, store):
    await run("kv.set", SET, idempotency_key="1")

    made = await run("kv.set", {"key": "k", "value": 2, "ifMissing": True}, idempotency_key="2")

    assert (made.ports, made.value["value"]) == (("conflict",), 1)


async def test_a_number_is_counted(run, store):
    first = (await run("kv.increment", {"key": "n", "by": 2, "ttl": 60}, idempotency_key="1")).value
    second = (await run("kv.increment", {"key": "n", "by": -0.5}, idempotency_key="2")).value

    assert (first["value"], second["value"]) == (2, 1.5)
    assert first["expiresAt"] == second["expiresAt"]
    assert first["expiresAt"].endswith("Z")


@pytest.mark.parametrize(
    ("with_", "left"),
    [
        ({"items": [1, 1.0, True, "1", 1]}, [1, True, "1"]),
        ({"items": [{"a": 1, "b": 1}, {"b": 1, "a": 1}, {"a": 1}]}, [{"a": 1, "b": 1}, {"a": 1}]),
        ({"items": [{"a": 1, "n": 1}, {"a": 2, "n": 2}, {"a": 1, "n": 3}], "by": ["a"]}, [1, 2]),
        ({"items": [{"a": 1, "n": 1}, {"a": 2, "n": 2}, {"a": 1, "n": 3}], "by": ["a"], "keep": "last"}, [2, 3]),
        ({"items": []}, []),
    ],
)
async def test_each_item_of_a_list_is_kept_once(run, with_, left):
    made = await run("dedupe", with_)

    assert [item["n"] if isinstance(item, dict) and "n" in item else item for item in made.value] == left
    assert made.ports == ("some" if left else "none",)


async def test_items_that_another_run_brought_are_left_out_and_those_of_the_same_run_are_not(run, store):
    given = {"items": [{"id": 1}, {"id": 2}], "by": ["id"], "memory": "orders", "ttl": "1h"}
    later = given | {"items": [{"id": 2.0, "x": 1}, {"id": "2"}]}

    assert (await run("dedupe", given, idempotency_key="1")).value == given["items"]
    assert (await run("dedupe", later, idempotency_key="2")).value == [{"id": "2"}]
    assert (await run("dedupe", given, idempotency_key="1", attempt=2)).value == given["items"]
    assert await run("dedupe", given, idempotency_key="3") == Output([], ("none",))


@pytest.mark.parametrize(
    ("type_name", "with_"),
    [
        ("kv.get", {"key": "k"}),
        ("kv.set", SET),
        ("kv.delete", {"key": "k"}),
        ("kv.increment", {"key": "k"}),
        ("dedupe", {"items": [1], "memory": "m"}),
    ],
)
async def test_what_is_bounded_by_a_share_reaches_no_kept_value(run, store, registry, type_name, with_):
    with pytest.raises(NodeFailure, match="out of reach of user:ada") as caught:
        await run(type_name, with_, get_bounds=lambda: ("user:ada",))

    assert caught.value.error.type is ErrorType.PERMANENT
    document = {"nodes": [{"id": "a", "type": type_name, "with": with_}]}
    assert len(needs(document, {type_name: registry.infos()[type_name].reaches})) == 1


async def test_a_worker_without_a_store_says_so(run):
    with pytest.raises(NodeFailure, match="values are not kept where this node runs"):
        await run("kv.get", {"key": "k"})


@pytest.mark.parametrize(
    ("type_name", "with_", "message"),
    [
        ("kv.get", {"key": ""}, "with.key: "),
        ("kv.get", {"key": "a\nb"}, "with.key: "),
        ("kv.set", {"key": "k" * 300, "value": 1}, "with.key: "),
        ("kv.set", {"key": "k"}, "with: "),
        ("kv.set", {**SET, "ttl": "soon"}, "with.ttl: "),
        ("kv.set", {**SET, "ttl": "1ms"}, "with.ttl: "),
        ("kv.set", {**SET, "ifMissing": True, "ifVersion": 1}, "with: give at most one of ifVersion and ifMissing"),
        ("kv.set", {"key": "k", "value": "x" * 70_000}, "with: value is larger than 64 KiB"),
        ("kv.increment", {"key": "k", "by": 1e300}, "with.by: "),
        ("dedupe", {"items": [], "ttl": "1h"}, "with: ttl goes with memory only"),
        ("dedupe", {"items": [0] * 2001, "memory": "m"}, "with: items has 2,001 items"),
        ("dedupe", {"items": [], "by": ["a..b"]}, "with.by[0]: is no path"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_when_they_are_saved(registry, type_name, with_, message):
    document = {"ropewalk": 1, "name": "t", "nodes": [{"id": "a", "type": type_name, "with": with_}]}

    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, registry.infos())

    assert str(refused.value.problems[0]).removeprefix("nodes[0].").startswith(message)
