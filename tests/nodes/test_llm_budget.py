"""A budget that is used up pauses the execution, and a person who resumes it grants as much again."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from ropewalk.core.events import ExecutionPaused, ExecutionResumed, RunStarted, RunWaiting
from ropewalk.core.waits import BudgetWait
from ropewalk.service.explaining import explain
from ropewalk.service.wait_reasons import waiting
from tests.engines.worlds import World, flow, node

from .services import MODELS

ASK = {"model": "small", "user": "Hello", "retry": {"maxAttempts": 1}}


class Town(World):
    """A world whose nodes may reach this machine."""

    @property
    def settings(self):
        return replace(super().settings, allow_hosts=("127.0.0.1",))


@pytest.fixture
async def world(tmp_path, site):
    MODELS["llm.chat"].serve(site)
    opened = Town(str(tmp_path / "budget.db"))
    await opened.open()
    values = MODELS["llm.chat"].at(site.url)
    await opened.service.credentials.create("model", "openai", values, [], "local")
    yield opened
    await opened.close()


def asking(count, **budget):
    nodes = [node(f"n{place}", "llm.chat", **ASK, **budget) | {"credentials": "model"} for place in range(count)]
    edges = " ".join(f"n{place}->n{place + 1}" for place in range(count - 1))
    return flow(*nodes, edges=edges, output=f"{{{{ nodes.n{count - 1}.output.text }}}}")


async def test_a_budget_that_is_used_up_pauses_and_uses_no_attempt(world, site):
    execution = await world.start(asking(3, budget={"tokens": 20}))

    paused = await world.until(execution, ExecutionPaused)
    waiting = await world.until(execution, RunWaiting)
    assert paused.by == f"execution:{execution}"
    assert paused.reason == "node n2 has used 30 of 20 tokens: resume to allow as much again"
    assert (waiting.node, waiting.attempt, type(waiting.wait)) == ("n2", 1, BudgetWait)
    assert len(site.asked) == 2
    await world.restart()
    assert (await world.details(execution))["state"] == "PAUSED"
    await world.service.resume(execution, "ann")
    ended = await world.ended(execution)

    assert (ended.output, len(site.asked)) == ('{"label": "bug"}', 3)
    assert [run["attempt"] for run in await world.runs(execution, "n2")] == [1]
    assert len(await world.events(execution, ExecutionResumed)) == 1


async def test_each_resumption_grants_as_much_again_to_all_nodes_of_the_execution(world, site):
    execution = await world.start(asking(5, budget={"tokens": 20}))

    for count in (1, 2):
        await world.until(execution, ExecutionPaused, count=count)
        await world.until(execution, RunWaiting, count=count)
        await world.service.resume(execution, "ann")
    await world.ended(execution)

    # 15 tokens each: 30 of 20 are used before n2, 60 of 50 before n4.
    assert [event.node for event in await world.events(execution, RunWaiting)] == ["n2", "n4"]
    assert len(site.asked) == 5


async def test_a_budget_of_cost_counts_by_the_prices_that_are_given(world, site):
    prices = {"small": {"input": 100_000, "output": 0}}

    execution = await world.start(asking(2, budget={"cost": 1}, prices=prices))
    paused = await world.until(execution, ExecutionPaused)
    await world.until(execution, RunWaiting)
    assert "used 1 of 1 cost" in paused.reason
    await world.service.resume(execution, "ann")

    assert (await world.ended(execution)).state == "SUCCESS"
    assert [event.node for event in await world.events(execution, RunStarted)] == ["n1"]


async def test_executions_have_budgets_of_their_own(world):
    ends = [await world.run(asking(2, budget={"tokens": 20})) for _ in range(2)]

    assert [each.state for each in ends] == ["SUCCESS", "SUCCESS"]


async def test_explain_says_that_the_budget_is_used_up_and_how_to_go_on(world):
    execution = await world.start(asking(3, budget={"tokens": 20}))
    await world.until(execution, RunWaiting)

    told = await explain(world.service.store, "default", execution, world.service.store.now())

    [reason] = told["reasons"]
    assert (reason["code"], reason["command"]) == ("PAUSED", f"resume {execution}")
    assert "node n2 has used 30 of 20 tokens" in reason["why"]


async def test_an_attempt_that_has_not_been_looked_at_since_is_held_by_its_budget(world):
    wait = BudgetWait("tokens", 30, 20, 0)

    reason = waiting(SimpleNamespace(story=SimpleNamespace(id="e1")), SimpleNamespace(wait=wait))

    assert (reason.code, reason.command) == ("BUDGET", "resume e1")
    assert reason.why == "its execution has spent 30 of 20 tokens; as much again is allowed when it is resumed"
