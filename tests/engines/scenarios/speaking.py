"""Nodes that speak to other executions: each thing is said once, however often the attempt is repeated."""

import asyncio
from collections.abc import Awaitable, Callable

from ropewalk.core.errors import ErrorType
from ropewalk.core.events import NodeFailed, RunWaiting, SignalReceived
from ropewalk.core.kinship import DEEPEST
from ropewalk.core.state import ExecutionState
from ropewalk.nodes.base import NodeContext, NodeType, Output, Wait
from ropewalk.nodes.executions import EventEmit, ExecutionCancel, ExecutionSignal, WorkflowStart
from ropewalk.store import executions
from tests.engines.outside import Outside
from tests.engines.worlds import ONCE, Json, World, act, flow, node

OTHER = flow(act("inner", "{{ input.n + 1 }}"), name="other", output="{{ nodes.inner.output }}")
Meanwhile = Callable[[], Awaitable[None]]
EAR = flow(node("hear", "wait", signal="go"), name="ear", output="{{ nodes.hear.output }}")
LISTENER = flow(node("hear", "wait", event="order.*"), name="ear", output="{{ nodes.hear.output }}")


def starting(workflow: str = "other", **given: object) -> Json:
    return flow(node("go", "workflow.start", workflow=workflow, **given), output="{{ nodes.go.output }}")


def telling(type_name: str, /, **given: object) -> Json:
    say = node("say", type_name, execution="{{ input }}", **given)
    port = "told" if type_name == "execution.signal" else "cancelled"
    return flow(say, act(port), act("over"), edges=f"say->{port}:{port} say->over:over")


async def _all_of(world: World, workflow: str) -> list[str]:
    """The executions of a workflow, newest first."""
    found = await executions.listed(world.service.store, "default", limit=1_000)
    wanted = (await world.service.engine.versions.of_name("default", workflow, None)).workflow
    return [each.id for each in found if each.workflow == wanted]


def held(kind: type[NodeType], outside: Outside) -> NodeType:
    """The type, which does what it does and then stops at the gate: its worker dies before the result is recorded."""

    class Held(kind):  # type: ignore[misc, valid-type]  # a class of our own for each
        name = "held"

        async def run(self, parameters: object, context: NodeContext) -> Output | Wait:
            output: Output = await super().run(parameters, context)
            await outside.gate("said").pass_through(context.node)
            return output

    return Held()


async def _repeated(world: World, kind: type[NodeType], given: Json, meanwhile: Meanwhile) -> str:
    """An execution whose worker dies after the effect of its node, and which goes on afterwards.

    `meanwhile` is after the effect, and lets the others come to rest: what the crash meets is the same every time.
    """
    world.types.register(held(kind, world.outside))
    edges = " ".join(f"say->{port}:{port}" for port in kind.ports or ())
    after = [act(port, port) for port in kind.ports or ()]
    execution = await world.start(flow(node("say", "held", **given), *after, edges=edges))
    await world.outside.gate("said").arrived()
    await meanwhile()
    await world.crash()
    world.outside.gate("said").open()
    await world.open()
    return execution


# Starting


async def a_node_starts_an_execution_and_does_not_wait_for_it(world: World) -> None:
    await world.save(OTHER)

    ended = await world.run(starting(input={"n": 41}, priority=7))

    assert ended.output is not None
    started = ended.output["execution"]
    assert (await world.ended(started)).output == 42
    details = await world.details(started)
    assert (details["parentExecutionId"], details["input"]) == (None, {"n": 41})
    assert await _all_of(world, "other") == [started]


async def an_attempt_at_a_start_that_is_repeated_starts_nothing_twice(world: World) -> None:
    await world.save(EAR)

    async def it_waits() -> None:
        (started,) = await _all_of(world, "ear")
        await world.until(started, RunWaiting)

    execution = await _repeated(world, WorkflowStart, {"workflow": "ear"}, it_waits)
    (started,) = await _all_of(world, "ear")

    assert (await world.ended(execution)).output == {"say": {"execution": started}}
    assert await _all_of(world, "ear") == [started]
    assert await world.states(started) == "RUNNING"


async def every_item_of_a_map_starts_an_execution_of_its_own(world: World) -> None:
    await world.save(OTHER)
    each = node("go", "workflow.start", workflow="other", input={"n": "{{ item }}"}, forEach=[1, 1, 2])

    ended = await world.run(flow(each))

    assert ended.output is not None
    started = [one["execution"] for one in ended.output["go"]]
    assert sorted([(await world.ended(one)).output for one in started]) == [2, 2, 3]
    assert sorted(await _all_of(world, "other")) == sorted(started)


async def executions_that_start_each_other_come_to_an_end(world: World) -> None:
    await world.save(flow(node("go", "workflow.start", workflow="again", retry=ONCE), name="again"))

    await world.start(flow(node("go", "workflow.start", workflow="again"), name="again2"))
    while len(found := await _all_of(world, "again")) < DEEPEST - 1:
        await asyncio.sleep(0)  # each of them starts the next one in its own time
    last = await world.until(found[0], NodeFailed)

    assert isinstance(last, NodeFailed)
    assert last.error.message == f"executions have started one another more than {DEEPEST} deep"
    assert len(await _all_of(world, "again")) == DEEPEST - 1


async def what_cannot_be_started_fails_its_node_for_good(world: World) -> None:
    await world.save({**OTHER, "input": {"type": "object", "required": ["n"]}})

    for document, message in [
        (starting("nothing"), "there is no workflow 'nothing'"),
        (starting(version=7), "there is no version 7"),
        (starting(input={}), "n"),
    ]:
        failed = await world.until(await world.start(document), NodeFailed)
        assert isinstance(failed, NodeFailed)
        assert (failed.error.type, failed.attempt) == (ErrorType.PERMANENT, 1)
        assert message in failed.error.message


# Events


async def a_node_emits_an_event_that_others_wait_for(world: World) -> None:
    waiting = [await world.start(LISTENER) for _ in range(2)]
    for execution in waiting:
        await world.until(execution, RunWaiting)

    ended = await world.run(flow(node("say", "event.emit", subject="order.paid", payload={"n": "{{ 1 + 1 }}"})))

    assert ended.output == {"say": {"subject": "order.paid", "told": 2}}
    for execution in waiting:
        assert (await world.ended(execution)).output == {"subject": "order.paid", "payload": {"n": 2}}


async def an_event_is_emitted_once_by_an_attempt_that_is_repeated(world: World) -> None:
    first = await world.start(LISTENER)
    await world.until(first, RunWaiting)

    async def another_waits() -> None:
        await world.ended(first)
        await world.until(await world.start(LISTENER), RunWaiting)

    execution = await _repeated(world, EventEmit, {"subject": "order.paid"}, another_waits)

    assert (await world.ended(execution)).output == {"say": {"subject": "order.paid", "told": 1}}
    assert (await world.ended(first)).state is ExecutionState.SUCCESS
    (second,) = [each for each in await _all_of(world, "ear") if each != first]
    assert await world.states(second) == "RUNNING"


# Signals


async def a_node_tells_another_execution_something(world: World) -> None:
    ear = await world.start(EAR)
    await world.until(ear, RunWaiting)

    ended = await world.run(telling("execution.signal", signal="go", payload={"by": "Ada"}), ear)

    assert ended.output == {"told": None}
    assert (await world.ended(ear)).output == {"by": "Ada"}
    over = await world.run(telling("execution.signal", signal="go"), ear)
    assert over.output == {"over": None}


async def a_signal_is_told_once_by_an_attempt_that_is_repeated(world: World) -> None:
    ear = await world.start(flow(node("first", "wait", signal="go"), node("second", "wait", signal="go")))
    await world.until(ear, RunWaiting, count=2)

    async def it_is_told() -> None:
        await world.until(ear, SignalReceived)

    execution = await _repeated(world, ExecutionSignal, {"execution": ear, "signal": "go"}, it_is_told)

    assert (await world.ended(execution)).output == {"told": "told"}
    assert len(await world.events(ear, SignalReceived)) == 1
    await world.service.signal(ear, "go")
    assert (await world.ended(ear)).state is ExecutionState.SUCCESS


async def a_signal_that_ended_its_execution_is_known_to_have_been_told(world: World) -> None:
    ear = await world.start(EAR)
    await world.until(ear, RunWaiting)

    async def it_ends() -> None:
        await world.ended(ear)

    execution = await _repeated(world, ExecutionSignal, {"execution": ear, "signal": "go", "payload": 1}, it_ends)

    assert (await world.ended(ear)).output == 1
    assert (await world.ended(execution)).output == {"told": "told"}


# Cancelling


async def a_node_cancels_another_execution(world: World) -> None:
    other = await world.start(EAR)
    await world.until(other, RunWaiting)

    ended = await world.run(telling("execution.cancel", reason="withdrawn"), other)

    assert ended.output == {"cancelled": None}
    assert (await world.ended(other)).state is ExecutionState.CANCELLED
    assert (await world.run(telling("execution.cancel"), other)).output == {"cancelled": None}
    assert (await world.run(telling("execution.cancel"), ended.execution)).output == {"over": None}


async def an_attempt_at_a_cancellation_that_is_repeated_says_the_same(world: World) -> None:
    other = await world.start(EAR)
    await world.until(other, RunWaiting)

    async def it_ends() -> None:
        await world.ended(other)

    execution = await _repeated(world, ExecutionCancel, {"execution": other}, it_ends)

    assert (await world.ended(execution)).output == {"cancelled": "cancelled"}
    assert (await world.ended(other)).state is ExecutionState.CANCELLED


async def an_execution_that_is_not_there_fails_the_node_that_speaks_to_it(world: World) -> None:
    for kind, given in (("execution.signal", {"signal": "go"}), ("execution.cancel", {})):
        failed = await world.until(await world.start(telling(kind, **given), "nowhere"), NodeFailed)
        assert isinstance(failed, NodeFailed)
        assert failed.error.message == "there is no execution 'nowhere'"
        assert failed.error.type is ErrorType.PERMANENT
