"""What the outside may ask: bad requests are refused with every reason and change nothing, others are audited."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ropewalk.core.errors import Conflict, InvalidDefinition, InvalidInput, InvalidTransition, NotFound
from ropewalk.core.events import RunWaiting
from ropewalk.core.state import ExecutionState
from ropewalk.store import audit
from tests.engines.judging import ask, every_execution
from tests.engines.worlds import ONCE, World, act, flow, node

ASK = node("ask", "approval", title="Really?")
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
NOT_JSON = {
    "NaN": [float("nan")],
    "infinity": {"a": float("inf")},
    "bytes": b"x",
    "a set": {1},
    "a tuple": (1, 2),
    "half a character": "\ud800",
    "NUL": "a\0b",
    "a huge integer": 2**60,
    "a key that is no text": {1: 2},
    "a cycle": ENDLESS,
    "an object": object(),
}
bad_values = pytest.mark.parametrize("value", NOT_JSON.values(), ids=list(NOT_JSON))


# Workflows


async def test_the_same_content_is_the_same_version(world: World):
    first, again = await world.save(flow(act("a"))), await world.save(flow(act("a")))

    assert (first.workflow, first.version) == (again.workflow, again.version) == (first.workflow, 1)


async def test_other_content_is_the_next_version_and_the_one_that_children_take(world: World):
    versions = [(await world.save(flow(act("a", value)))).version for value in (1, 2, 1)]

    assert versions == [1, 2, 3]
    assert ask(world.db, "select published from workflow") == [(3,)]


async def test_a_version_is_found_again_after_a_restart(world: World):
    first = await world.save(flow(act("a")))

    await world.restart()

    assert (await world.save(flow(act("a")))).version == first.version


@pytest.mark.parametrize("given", [{"event": "order paid"}, {"event": "x" * 256}, {"until": 253_402_214_400}])
async def test_a_wait_for_what_cannot_come_is_refused_when_it_is_saved(world: World, given: dict[str, Any]):
    with pytest.raises(InvalidDefinition, match=f"nodes\\[0\\].with.{next(iter(given))}"):
        await world.save(flow(node("a", "wait", **given)))

    assert await world.save(flow(node("a", "wait", event="order.{{ input.id }}.>")))


async def test_a_bad_definition_is_refused_with_all_its_problems_and_not_kept(world: World):
    document = flow(act("a"), node("b", "nonsense"), act("a"), edges="a->nowhere")

    with pytest.raises(InvalidDefinition) as refusal:
        await world.save(document)

    assert len(refusal.value.problems) == 3
    assert ask(world.db, "select count(*) from workflow") == [(0,)]


# Starting


@bad_values
async def test_an_input_that_is_no_json_is_refused_and_nothing_is_accepted(world: World, value: Any):
    version = await world.save(flow(act("a")))

    with pytest.raises(InvalidInput, match="input"):
        await world.service.start(version, value)
    with pytest.raises(InvalidInput, match="vars"):
        await world.service.start(await world.save(flow(act("a"), vars={"v": 1})), vars={"v": value})

    assert every_execution(world.db) == []


async def test_an_input_is_held_to_the_schema_of_the_workflow(world: World):
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    version = await world.save(flow(act("a", "{{ input.n }}"), input=schema))

    for value in (None, {}, {"n": "one"}):
        with pytest.raises(InvalidInput):
            await world.service.start(version, value)

    assert (await world.ended(await world.service.start(version, {"n": 1}))).output == {"a": 1}
    assert len(every_execution(world.db)) == 1


@pytest.mark.parametrize("given", [{"vars": {"other": 1}}, {"priority": 10}, {"priority": -1}])
async def test_a_start_that_makes_no_sense_is_refused(world: World, given: dict[str, Any]):
    version = await world.save(flow(act("a"), vars={"v": 1}))

    with pytest.raises(InvalidInput):
        await world.service.start(version, **given)

    assert every_execution(world.db) == []


async def test_a_key_that_cannot_be_evaluated_is_the_callers_to_mend(world: World):
    version = await world.save(flow(act("a"), concurrencyKey="{{ input.n + 1 }}"))

    with pytest.raises(InvalidInput, match="concurrencyKey"):
        await world.service.start(version, {})

    assert every_execution(world.db) == []
    assert (await world.ended(await world.service.start(version, {"n": 1}))).state is ExecutionState.SUCCESS


async def test_what_was_accepted_is_in_the_store_when_the_answer_comes(world: World):
    execution = await world.start(flow(ASK))

    assert every_execution(world.db) == [execution]
    assert await world.service.cancel(execution)


# Telling


@bad_values
async def test_what_is_told_must_be_json_and_disturbs_no_execution_otherwise(world: World, value: Any):
    execution = await world.start(flow(ASK, act("bad", fails=9, retry=ONCE)))
    await world.until(execution, RunWaiting)
    (letter,) = await world.letters(execution)
    before = await world.events(execution)

    refused: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: world.service.signal(execution, "go", value),
        lambda: world.service.decide(execution, "ask", approved=True, payload=value),
        lambda: world.service.fix(letter["id"], value),
        lambda: world.service.requeue(letter["id"], {"value": value}),
    ]
    for verb in refused:
        with pytest.raises(InvalidInput):
            await verb()

    assert await world.events(execution) == before
    await world.service.fix(letter["id"], 1)
    await world.service.decide(execution, "ask", approved=True)
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS


@pytest.mark.parametrize("value", [5, ["x"], {"a": 1}, True, object(), "\ud800"])
async def test_a_word_that_is_no_text_is_refused_and_the_log_stays_readable(world: World, value: Any):
    execution = await world.start(flow(ASK))
    await world.until(execution, RunWaiting)

    refused: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: world.service.signal(execution, value),
        lambda: world.service.pause(execution, reason=value),
        lambda: world.service.cancel(execution, reason=value),
        lambda: world.service.give_up(execution, "ask", reason=value),
    ]
    for verb in refused:
        with pytest.raises(InvalidInput):
            await verb()

    await world.restart()
    await world.service.decide(execution, "ask", approved=True)
    assert (await world.ended(execution)).state is ExecutionState.SUCCESS


async def test_a_decision_about_what_asks_nothing_is_refused(world: World):
    execution = await world.start(flow(ASK, act("b")))
    await world.until(execution, RunWaiting)

    for where in ("b", "nowhere"):
        with pytest.raises((InvalidTransition, NotFound)):
            await world.service.decide(execution, where, approved=True)

    assert await world.service.cancel(execution)


async def test_of_two_who_discard_a_dead_letter_one_does_it(world: World):
    ended = await world.run(flow(act("a", fails=9, retry=ONCE)))
    (letter,) = await world.letters(ended.execution)

    told = await asyncio.gather(*(world.service.discard(letter["id"]) for _ in range(3)), return_exceptions=True)

    assert sorted(type(each).__name__ for each in told) == ["Conflict", "Conflict", "NoneType"]


async def test_every_accepted_request_leaves_one_audit_row_and_no_other_does(world: World):
    execution = await world.start(flow(ASK, act("a", fails=9, retry=ONCE)), actor="ann")
    await world.until(execution, RunWaiting)
    (letter,) = await world.letters(execution)
    await world.service.pause(execution, by="bob")
    await world.service.pause(execution, by="nobody")
    await world.service.resume(execution, by="cid")
    with pytest.raises(InvalidTransition):
        await world.service.retry(execution, by="nobody")
    await world.service.discard(letter["id"], by="dee")
    with pytest.raises(Conflict):
        await world.service.discard(letter["id"], by="nobody")
    await world.service.cancel(execution, by="eve")

    rows = await audit.listed(world.service.store, "default")
    told = [(row.actor, row.verb, row.object) for row in reversed(rows)]

    assert told == [
        ("ann", "start", execution),
        ("bob", "pause", execution),
        ("cid", "resume", execution),
        ("dee", "discard", letter["id"]),
        ("eve", "cancel", execution),
    ]


@pytest.mark.parametrize("field", [{"pool": "gpu"}, {"credentials": "shop"}])
async def test_what_one_process_cannot_give_is_refused_and_not_ignored(world: World, field: dict[str, str]):
    document = {"name": "asks", "nodes": [{"id": "a", "type": "noop", **field}]}

    with pytest.raises(InvalidDefinition, match=r"nodes\[0\]"):
        await world.service.save(document)
