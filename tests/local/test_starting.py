"""Starts inside a program: what was saved is known again, and what has changed is not mistaken for it."""

import asyncio
import gc
import math
from typing import Any

import pytest

import ropewalk
from ropewalk import LocalEngine, Workflow
from ropewalk.service import document_cache
from ropewalk.store import workflows
from tests.local.stores import address, engine

__all__ = ["address", "engine"]


def says(value: Any, name: str = "says") -> dict[str, Any]:
    return {"ropewalk": 1, "name": name, "nodes": [{"id": "a", "type": "noop", "with": {"value": value}}]}


def built(value: Any, name: str = "says") -> Workflow:
    workflow = Workflow(name)
    workflow.node("a", "noop", value=value)
    return workflow


async def outcome(engine: LocalEngine, workflow: Any) -> Any:
    return (await (await engine.start(workflow)).result())["a"]


def counted(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The documents that are checked from now on."""
    checked: list[Any] = []
    check = engine.service.check
    monkeypatch.setattr(engine.service, "check", lambda document: checked.append(document) or check(document))
    return checked


async def versions(engine: LocalEngine, name: str = "says") -> list[int]:
    return [each["version"] async for each in engine.versions(name)]


@pytest.mark.parametrize("make", [says, built])
async def test_what_was_saved_is_not_checked_again(engine: LocalEngine, monkeypatch, make):
    workflow, checked = make(7), counted(engine, monkeypatch)

    assert [await outcome(engine, workflow) for _ in range(3)] == [7, 7, 7]
    assert len(checked) == 1
    assert await versions(engine) == [1]


async def test_an_equal_document_that_is_another_object_is_known_again(engine: LocalEngine, monkeypatch):
    checked = counted(engine, monkeypatch)

    assert [await outcome(engine, says([7, {"b": None}])) for _ in range(2)] == [[7, {"b": None}]] * 2
    assert len(checked) == 1


async def test_many_first_starts_at_once_share_one_save(engine: LocalEngine, monkeypatch):
    checked = counted(engine, monkeypatch)

    assert await asyncio.gather(*[outcome(engine, says(7)) for _ in range(100)]) == [7] * 100
    assert len(checked) == 1


async def test_a_document_that_was_changed_between_two_starts_is_the_next_version(engine: LocalEngine):
    document = says(1)
    first = await outcome(engine, document)
    document["nodes"][0]["with"]["value"] = 2

    assert (first, await outcome(engine, document)) == (1, 2)
    assert await versions(engine) == [2, 1]


async def test_a_document_that_is_changed_while_it_is_saved_is_started_as_it_was(engine: LocalEngine):
    document = says(1)
    starting = asyncio.ensure_future(engine.start(document))
    await asyncio.sleep(0)
    document["nodes"][0]["with"]["value"] = 2

    assert await (await starting).result() == {"a": 1}
    assert await outcome(engine, document) == 2


async def test_a_workflow_that_was_built_upon_between_two_starts_is_the_next_version(engine: LocalEngine):
    workflow = built(1)
    await outcome(engine, workflow)
    b = workflow.node("b", "noop", value=2)
    with_node = await (await engine.start(workflow)).result()
    workflow["a"] >> b
    with_edge = await (await engine.start(workflow)).result()
    workflow.output = [b.output]
    with_output = await (await engine.start(workflow)).result()

    assert (with_node, with_edge, with_output) == ({"a": 1, "b": 2}, {"b": 2}, [2])
    assert await versions(engine) == [4, 3, 2, 1]


async def test_an_output_that_was_read_is_a_copy(engine: LocalEngine):
    workflow = built(1)
    workflow.output = {"one": 1}
    assert await (await engine.start(workflow)).result() == {"one": 1}

    workflow.output["one"] = 2

    assert await (await engine.start(workflow)).result() == {"one": 1}


@pytest.mark.parametrize("make", [says, built])
async def test_two_workflows_of_one_name_in_a_program_are_each_started_as_they_are(engine: LocalEngine, make):
    one, other = make("one"), make("other")

    assert [await outcome(engine, each) for each in (one, other, one, other)] == ["one", "other"] * 2
    assert await asyncio.gather(*[outcome(engine, each) for each in (one, other) * 5]) == ["one", "other"] * 5
    assert (await engine.definition("says"))["document"]["nodes"][0]["with"]["value"] == "other"


@pytest.mark.parametrize(("one", "other"), [(True, 1), (1, 1.0), (0.0, -0.0), ("1", 1), ([], {}), (None, False)])
async def test_values_that_python_takes_for_the_same_are_told_apart(engine: LocalEngine, one, other):
    outcomes = [await outcome(engine, says(each)) for each in (one, other, one)]

    assert [repr(each) for each in outcomes] == [repr(each) for each in (one, other, one)]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, {1}, b"1", {1: 2}, object()])
async def test_what_json_cannot_say_is_refused_also_where_its_text_is_known(engine: LocalEngine, wrong):
    for known in (None, "MQ==", [1], {"1": 2}):
        await outcome(engine, says(known))

        with pytest.raises(ropewalk.RopewalkError):
            await engine.start(says(wrong))


async def test_a_save_that_failed_is_tried_again_by_the_next_start(engine: LocalEngine, monkeypatch):
    save, failures = workflows.save, [ropewalk.Unavailable("away"), ropewalk.Unavailable("away")]

    async def failing(*about: Any) -> workflows.Saved:
        if failures:
            raise failures.pop()
        return await save(*about)

    monkeypatch.setattr(workflows, "save", failing)
    started = await asyncio.gather(*[engine.start(says(1)) for _ in range(3)], return_exceptions=True)
    assert [type(each) for each in started] == [ropewalk.Unavailable] * 3
    with pytest.raises(ropewalk.Unavailable):
        await engine.start(says(1))

    assert await outcome(engine, says(1)) == 1


async def test_a_caller_that_leaves_takes_no_save_away_from_the_others(engine: LocalEngine):
    first, second = [asyncio.ensure_future(engine.start(says(7))) for _ in range(2)]
    await asyncio.sleep(0)
    first.cancel()

    assert await (await second).result() == {"a": 7}


async def test_what_was_published_by_other_means_is_published_again_by_a_start(engine: LocalEngine):
    workflow = built(1)
    await outcome(engine, workflow)
    await engine.save(built(2), publish=True)

    await outcome(engine, workflow)

    found = await engine.definition("says")
    assert found["published"] == found["latest"] == 3
    assert found["document"]["nodes"][0]["with"]["value"] == 1


async def test_names_that_are_made_by_the_program_are_not_all_kept(engine: LocalEngine, monkeypatch):
    monkeypatch.setattr(document_cache, "MOST", 10)
    for number in range(30):
        await outcome(engine, says(number, f"says-{number}"))
    checked = counted(engine, monkeypatch)

    assert len(engine.service.document_cache._kept) == len(engine.service.document_cache._latest) == 10
    assert [await outcome(engine, says(number, f"says-{number}")) for number in (0, 29)] == [0, 29]
    assert len(checked) == 1


# By name


async def test_a_saved_workflow_is_started_by_its_name(engine: LocalEngine):
    saved = await engine.save(built(1), publish=True)
    await engine.save(built(2))

    by_name, by_id = await engine.start("says"), await engine.start(saved["id"], version=2)

    assert [await by_name.result(), await by_id.result()] == [{"a": 1}, {"a": 2}]
    with pytest.raises(ropewalk.NotFound, match=r"Workflow\.load"):
        await engine.start("nothing.yaml")
    with pytest.raises(TypeError, match="version is for a workflow that is named"):
        await engine.start(built(1), version=1)


async def test_a_start_under_a_key_is_done_once(engine: LocalEngine):
    first, second = [await engine.start(says(7), key="once") for _ in range(2)]

    assert first.id == second.id
    assert await second.result() == {"a": 7}


# Ends


async def test_a_result_after_the_end_asks_the_database_nothing(engine: LocalEngine, monkeypatch):
    execution = await engine.start(says(7))
    async for _ in execution.events():
        pass
    asked: list[str] = []
    fetch = engine.service.store.fetch_one
    monkeypatch.setattr(engine.service.store, "fetch_one", lambda name, *more: asked.append(name) or fetch(name, *more))

    first = await execution.result()
    first["a"] = 8

    assert asked == []
    assert await execution.result() == {"a": 7}


async def test_nothing_is_kept_of_executions_whose_handles_were_dropped(engine: LocalEngine):
    followers = engine.service.engine.watching
    kept = await engine.start(says(7))
    for _ in range(10):
        await outcome(engine, says(7))
    gc.collect()

    assert list(followers._expected) == [kept.id]


async def test_the_result_of_an_execution_that_was_reopened_is_its_later_one(engine: LocalEngine):
    document = {"ropewalk": 1, "name": "fails", "nodes": [{"id": "a", "type": "fail", "with": {"message": "no"}}]}
    execution = await engine.start(document)
    with pytest.raises(ropewalk.ExecutionEnded):
        await execution.result()
    letter = await anext(engine.dead_letters())

    await engine.fix(letter["id"], 7)

    assert await execution.result() == {"a": 7}


# Many


async def test_many_inputs_are_as_many_executions_in_their_order(engine: LocalEngine):
    started = await engine.start_many(says("{{ input }}"), range(2_500))

    results = await asyncio.gather(*[each.result() for each in started])
    assert results == [{"a": number} for number in range(2_500)]
    assert await engine.start_many(says("{{ input }}"), []) == []


async def test_many_are_accepted_a_thousand_in_a_transaction(engine: LocalEngine, monkeypatch):
    await outcome(engine, says("{{ input }}"))
    batches: list[int] = []
    start_batch = engine.service.start_batch

    async def counting(starts: Any) -> list[str]:
        batches.append(len(starts))
        return await start_batch(starts)

    monkeypatch.setattr(engine.service, "start_batch", counting)
    await engine.start_many(says("{{ input }}"), [None] * 2_001)

    assert batches == [1_000, 1_000, 1]


@pytest.mark.parametrize("count", [3, 2_003])
async def test_one_bad_input_among_many_is_named_and_nothing_is_accepted(engine: LocalEngine, count):
    document = {**says("{{ input }}"), "input": {"type": "integer"}, "concurrencyKey": "{{ 10 / input }}"}
    for wrong, message in (("text", r"inputs\[.*"), (0, r"inputs\[.*concurrencyKey")):
        given = [*range(1, count), wrong]

        with pytest.raises(ropewalk.Invalid, match=message) as refusal:
            await engine.start_many(document, given)

        assert [each.path[1] for each in refusal.value.problems] == [count - 1]
    assert [each async for each in engine.executions()] == []


@pytest.mark.parametrize("count", [3, 1_003])
async def test_what_is_wrong_with_all_of_many_starts_is_said_once(engine: LocalEngine, count):
    for about, message in (({"vars": {"x": 1}}, r"vars\.x: the workflow has no"), ({"priority": 10}, "priority: must")):
        with pytest.raises(ropewalk.Invalid, match=message) as refusal:
            await engine.start_many(says(1), [None] * count, **about)

        assert len(refusal.value.problems) == 1


@pytest.mark.parametrize("inputs", ["text", {"a": 1}, b"bytes"])
async def test_what_is_no_list_of_inputs_is_refused(engine: LocalEngine, inputs):
    with pytest.raises(TypeError, match="one input for each execution"):
        await engine.start_many(says(1), inputs)
