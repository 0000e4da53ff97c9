"""What a program can read of its own store: the nouns of the client, with the same answers."""

from typing import Any

import pytest

import ropewalk
from ropewalk import LocalEngine, Workflow
from ropewalk.client import AsyncClient, AsyncExecution
from ropewalk.local import LocalExecution
from tests.local.stores import address, engine

__all__ = ["address", "engine"]


def says(value: Any, name: str = "says") -> Workflow:
    workflow = Workflow(name)
    workflow.node("a", "noop", value=value)
    return workflow


def failing(name: str = "fails") -> Workflow:
    workflow = Workflow(name)
    workflow.node("a", "fail", message="no")
    return workflow


async def listed(series: Any) -> list[Any]:
    return [each async for each in series]


async def failed(engine: LocalEngine, workflow: Workflow, count: int = 1) -> list[str]:
    """Executions that gave up."""
    started = await engine.start_many(workflow, [None] * count)
    for each in started:
        with pytest.raises(ropewalk.ExecutionEnded):
            await each.result()
    return [each.id for each in started]


@pytest.mark.parametrize(
    "name",
    [
        "executions", "start", "execution", "queue_item", "publish_event", "definitions", "definition", "versions",
        "version", "diff", "validate", "save", "archive", "dead_letters", "dead_letter_groups", "dead_letter",
        "requeue", "fix", "discard", "note", "requeue_all", "discard_all",
    ],
)  # fmt: skip
def test_the_engine_has_the_verbs_of_the_client_by_their_names(name):
    assert callable(getattr(LocalEngine, name))
    assert hasattr(AsyncClient, name)


def test_an_execution_has_every_verb_that_one_of_the_client_has():
    verbs = [name for name in dir(AsyncExecution) if not name.startswith("_") and name != "line"]

    assert [name for name in verbs if name != "id" and not hasattr(LocalExecution, name)] == []


# Executions


async def test_executions_are_listed_and_narrowed(engine: LocalEngine):
    many = [each.id for each in await engine.start_many(says(1), [None] * 250)]
    for each in many:
        await engine.execution(each).result()
    [other] = await failed(engine, failing())

    everything = [each["id"] async for each in engine.executions()]
    assert everything == sorted([*many, other], reverse=True)
    assert [each["id"] async for each in engine.executions(limit=3)] == everything[:3]
    assert [each["id"] async for each in engine.executions(limit=0)] == []
    assert [each["id"] async for each in engine.executions(state="FAILED")] == [other]
    assert [each["id"] async for each in engine.executions(workflow="fails", trigger="MANUAL")] == [other]
    assert await listed(engine.executions(until="2020-01-01T00:00:00Z")) == []
    assert len(await listed(engine.executions(since="2020-01-01T00:00:00+01:00"))) == 251


@pytest.mark.parametrize(
    ("narrowed", "field"),
    [({"state": "DONE"}, "state"), ({"trigger": "x"}, "trigger"), ({"since": "soon"}, "since"),
     ({"until": "2026-01-01T00:00:00"}, "until"), ({"until": 7}, "until")],
)  # fmt: skip
async def test_what_no_list_can_be_narrowed_by_is_refused_with_its_field(engine: LocalEngine, narrowed, field):
    with pytest.raises(ropewalk.Invalid, match=f"^{field}: must be"):
        await listed(engine.executions(**narrowed))


async def test_what_does_not_exist_is_not_found(engine: LocalEngine):
    for series in (engine.executions(workflow="none"), engine.versions("none"), engine.dead_letters(workflow="none")):
        with pytest.raises(ropewalk.NotFound, match="'none'"):
            await listed(series)
    nothing = engine.execution("nothing")
    for asked in (engine.definition("none"), engine.dead_letter("none"), engine.requeue("none"), nothing.details(),
                  nothing.explain(), nothing.output(), engine.queue_item("nothing")):  # fmt: skip
        with pytest.raises(ropewalk.NotFound):
            await asked


async def test_an_execution_tells_its_nodes_runs_events_and_output(engine: LocalEngine):
    execution = await engine.start(says(7))
    assert (await execution.wait())["state"] == "SUCCESS"

    assert [each["id"] async for each in execution.nodes()] == ["a"]
    assert [each["state"] async for each in execution.runs()] == ["SUCCESS"]
    assert await execution.output() == {"a": 7}
    recorded = await listed(execution.recorded())
    assert [each["seq"] for each in recorded] == list(range(1, len(recorded) + 1))
    assert recorded == await listed(execution.events())
    assert (await listed(execution.recorded(after=2)))[0]["seq"] == 3
    assert (await engine.queue_item(execution.id))["state"] == "DONE"


async def test_an_execution_explains_why_it_does_not_go_on(engine: LocalEngine):
    workflow = Workflow("waits")
    workflow.node("a", "wait", signal="go")
    execution = await engine.start(workflow)
    async for event in execution.events():
        if event["type"] == "RunWaiting":
            break

    whole, node = await execution.explain(), await execution.explain("a")

    assert whole["waitingFor"] == "signal"
    assert "go" in node["nodes"][0]["why"]


async def test_a_replay_is_an_execution_that_says_whether_it_gave_the_same(engine: LocalEngine):
    execution = await engine.start(says(7))
    await execution.result()

    again = await execution.replay()

    assert await again.result() == {"a": 7}
    assert (await again.details())["sameOutput"] is True


# Dead letters


async def test_dead_letters_are_listed_and_worked_off_one_by_one(engine: LocalEngine):
    ids = await failed(engine, failing(), 4)
    letters = {each["executionId"]: each["id"] async for each in engine.dead_letters(workflow="fails", node="a")}
    assert sorted(letters) == ids
    assert list(letters.values()) == sorted(letters.values(), reverse=True)

    assert await engine.fix(letters[ids[0]], 7) == ids[0]
    assert await engine.execution(ids[0]).result() == {"a": 7}
    assert await engine.requeue(letters[ids[1]], {"message": "again"}) == ids[1]
    with pytest.raises(ropewalk.ExecutionEnded, match="again"):
        await engine.execution(ids[1]).result()
    assert (await engine.discard(letters[ids[2]], "void"))["resolution"] == "DISCARDED"
    assert "asked" in ((await engine.note(letters[ids[3]], "asked"))["notes"] or "")
    with pytest.raises(ropewalk.Conflict):
        await engine.requeue(letters[ids[2]])

    pending = [each["executionId"] async for each in engine.dead_letters()]
    assert sorted(pending) == [ids[1], ids[3]]
    assert len(await listed(engine.dead_letters(None))) == 5
    assert [each["id"] async for each in engine.dead_letters("DISCARDED")] == [letters[ids[2]]]
    assert (await engine.dead_letter(letters[ids[0]]))["resolution"] == "FIXED"


async def test_the_result_is_the_completed_one_when_a_tolerated_item_was_fixed_after_the_end(engine: LocalEngine):
    workflow = Workflow("mended")
    workflow.node("m", "fail", for_each=[1], failure_tolerance=1, dead_letters="always", message="no")
    started = await engine.start(workflow)
    assert await engine.execution(started.id).result() == {"m": [None]}

    [letter] = [each["id"] async for each in engine.dead_letters()]
    await engine.fix(letter, 7)

    assert await started.result() == {"m": [7]}


async def test_dead_letters_that_failed_alike_are_worked_off_together(engine: LocalEngine):
    await failed(engine, failing(), 3)
    await failed(engine, failing("others"), 2)
    groups = await listed(engine.dead_letter_groups())
    assert [(each["workflow"], each["count"]) for each in groups] == [("fails", 3), ("others", 2)]

    requeued = await listed(engine.requeue_all(groups[0]["fingerprint"], stop_after_failures=1))
    discarded = await listed(engine.discard_all(groups[1]["fingerprint"], "void", limit=1))

    assert requeued[0]["outcome"] == "REQUEUED"
    assert (requeued[-1]["outcome"], requeued[-1]["id"]) == ("STOPPED", None)
    assert [each["outcome"] for each in discarded] == ["DISCARDED"]
    with pytest.raises(ropewalk.Invalid, match="rate"):
        await listed(engine.requeue_all(groups[0]["fingerprint"], rate=0))
    with pytest.raises(ropewalk.Invalid, match=r"^resolution: must be one of"):
        await listed(engine.dead_letters("OPEN"))


# Definitions


async def test_definitions_are_saved_listed_compared_and_archived(engine: LocalEngine):
    first = await engine.save(says(1))
    second = await engine.save(says(2).document(), publish=True, on=first["hash"])
    with pytest.raises(ropewalk.Conflict):
        await engine.save(says(3), on=first["hash"])
    await engine.save(says(1, "another"))

    assert [each["name"] async for each in engine.definitions()] == ["another", "says"]
    assert [each["id"] async for each in engine.definitions("sa")] == [second["id"]]
    assert [each["version"] async for each in engine.versions("says")] == [2, 1]
    assert (await engine.version("says", 1))["document"] == says(1).document()
    assert (await engine.definition("says"))["published"] == 2
    assert (await engine.diff("says", 1, 2)) != (await engine.diff("says", 1, 1))
    assert (await engine.publish_version("says", 1))["changed"]
    assert await (await engine.start("says")).result() == {"a": 1}
    assert (await engine.archive("says"))["changed"]
    with pytest.raises(ropewalk.InvalidTransition, match="archived"):
        await engine.start("says")
    assert [each["name"] async for each in engine.definitions()] == ["another"]
    assert len(await listed(engine.definitions(archived=True))) == 2


async def test_what_was_archived_comes_back_with_a_start_of_its_document(engine: LocalEngine):
    workflow = says(7)
    await (await engine.start(workflow)).result()
    await engine.archive("says")

    assert await (await engine.start(workflow)).result() == {"a": 7}
    assert [each["name"] async for each in engine.definitions()] == ["says"]


async def test_a_workflow_is_validated_with_every_problem_and_nothing_is_stored(engine: LocalEngine):
    good = await engine.validate(says(7))
    wrong = await engine.validate({"ropewalk": 1, "name": "x", "nodes": [{"id": "a", "type": "none"}, {"id": "1"}]})

    assert (good["valid"], good["problems"]) == (True, [])
    assert not wrong["valid"]
    assert len(wrong["problems"]) >= 2
    assert await listed(engine.definitions()) == []
    with pytest.raises(TypeError, match=r"Workflow\.load"):
        await engine.save(7)  # type: ignore[arg-type]  # on purpose


async def test_an_event_is_published_by_the_name_the_client_has_for_it(engine: LocalEngine):
    assert await engine.publish_event("order.paid", 7) == await engine.publish("order.paid", 7) == 0
