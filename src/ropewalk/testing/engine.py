"""The engine that tests use, in two twins: `TestEngine` for plain tests, `AsyncTestEngine` for async ones.

What looks at an execution, or answers a question of it, first lets the engine do everything that can be done before
time passes. What a test asks for in the middle of it (cancel, pause, signal …) is told at once.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ropewalk.core.canonical import JSON
from ropewalk.core.execution.view import NodesView, blobs_of
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.local import LocalEngine, LocalExecution
from ropewalk.nodes.base import NodeType
from ropewalk.service import reading
from ropewalk.store import dlq
from ropewalk.store import executions as stored
from ropewalk.testing.skipping import Skipping
from ropewalk.testing.stubs import Stubs
from ropewalk.testing.verbs import Awaiting, Blocking, Loop, verb
from ropewalk.workflow import Workflow

MOST_LISTED = 1_000
Json = dict[str, Any]


class ExecutionVerbs:
    """What a test does with one execution."""

    def __init__(self, time: Skipping, execution: str) -> None:
        self.id = execution
        self._time = time
        self._service = time.service
        self._local = LocalExecution(time.service, execution)

    # Its end; time is skipped until then

    @verb
    async def result(self) -> JSON:
        """The output; `ExecutionEnded` if it failed, `StillWaiting` if no time ends it."""
        await self._time.until_ended(self.id)
        return await self._local.result()

    @verb
    async def wait(self) -> Json:
        """The execution as recorded at its end, in any final state; `StillWaiting` if no time ends it."""
        await self._time.until_ended(self.id)
        return await self._local.details()

    # How it stands; no time is skipped

    @verb
    async def state(self) -> str:
        await self._time.quiet()
        return str(await self._local.state())

    @verb
    async def details(self) -> Json:
        """The execution as recorded, with its nodes."""
        await self._time.quiet()
        return await self._local.details()

    @verb
    async def nodes(self) -> dict[str, Json]:
        """Its nodes by their ids: type, state, attempts, output, error."""
        await self._time.quiet()
        story = await reading.recorded(self._service.store, self.id)
        folded = story.folded()
        for blob in (blob for output in folded.outputs.values() for blob in blobs_of(output)):
            folded.blobs[blob.hash] = msgspec.json.decode(await self._service.store.blobs.get(blob.hash))
        view = NodesView(folded)
        return {node["id"]: {**node, "output": view[node["id"]]["output"]} for node in reading.nodes_of(story)}

    @verb
    async def events(self, *types: str) -> list[Json]:
        """Its events in order, all or those of these types: `{type, seq, at, data, …}`."""
        await self._time.quiet()
        found = await reading.list_events(self._service.store, self.id)
        # As JSON, so that lists are lists and compare as such.
        return [msgspec.json.decode(msgspec.json.encode(each)) for each in found if not types or each["type"] in types]

    @verb
    async def explain(self, node: str | None = None) -> Json:
        """Why it, or a node of it, does not run now."""
        await self._time.quiet()
        return await self._time.explain(self.id, node)

    # Answers

    @verb
    async def approve(self, node: str, payload: JSON = None, *, item: int | None = None) -> None:
        await self._time.quiet()
        await self._local.approve(node, payload, item=item)

    @verb
    async def reject(self, node: str, payload: JSON = None, *, item: int | None = None) -> None:
        await self._time.quiet()
        await self._local.reject(node, payload, item=item)

    # Requests

    @verb
    async def signal(self, name: str, payload: JSON = None) -> None:
        await self._local.signal(name, payload)

    @verb
    async def pause(self) -> None:
        await self._local.pause()

    @verb
    async def resume(self) -> None:
        await self._local.resume()

    @verb
    async def cancel(self, reason: str | None = None) -> None:
        await self._local.cancel(reason)

    @verb
    async def retry(self) -> None:
        """Give every failed node another chance, in this execution."""
        await self._local.retry()


class TestExecution(ExecutionVerbs, Blocking):
    """One execution in a plain test."""

    __test__ = False  # pytest collects classes by their names

    def __init__(self, time: Skipping, execution: str, loop: Loop) -> None:
        super().__init__(time, execution)
        self._loop = loop

    def rerun(self, node: str) -> "TestExecution":
        """A new execution that keeps every result but those of `node` and of what is behind it."""
        again = self._loop.run(lambda: self._service.rerun(self.id, node))
        return TestExecution(self._time, again, self._loop)


class AsyncTestExecution(ExecutionVerbs, Awaiting):
    """One execution in an async test."""

    async def rerun(self, node: str) -> "AsyncTestExecution":
        """A new execution that keeps every result but those of `node` and of what is behind it."""
        return AsyncTestExecution(self._time, await self._service.rerun(self.id, node))


class EngineVerbs:
    """What a test does with the engine."""

    def __init__(self, local: LocalEngine, stubs: Stubs) -> None:
        self._local = local
        self._service = local.service
        self._stubs = stubs
        self._time = Skipping(local.service)

    def stub(self, node_type: str | NodeType, *outcomes: Any) -> None:
        """Give these outcomes, one after the other and the last for good, in place of what a node type does.

        An outcome is a value, a function of the inputs (and, if it takes two arguments, of the context), an exception
        to raise, or a node type to run instead. Without any the output is null. `Output(value, (port,))` takes a port.
        """
        self._stubs.put(node_type, outcomes or (None,))

    def calls(self, node_type: str | NodeType) -> list[Json]:
        """The inputs of every attempt that a stub carried out, in order."""
        return self._stubs.calls(node_type)

    @verb
    async def skip(self, length: Any) -> None:
        """Let time pass, like "2d", a timedelta or seconds; what is due meanwhile happens in the order of its time."""
        await self._time.skip(length)

    @verb
    async def publish(self, subject: str, payload: JSON = None) -> int:
        """Publish an event; how many waits it ended."""
        await self._time.quiet()
        return await self._service.publish(subject, payload)

    @verb
    async def save(self, workflow: "Workflow | Mapping[str, JSON]") -> None:
        """Save and publish a workflow that others call by its name."""
        await self._service.save(self._local.document_of(workflow))

    @verb
    async def create_credential(self, name: str, type: str, values: Mapping[str, JSON]) -> None:  # noqa: A002
        """Keep a credential, for workflows that name it: what is not there is refused when a workflow is saved."""
        await self._local.create_credential(name, type, values)

    @verb
    async def executions(self, state: str | None = None) -> list[Json]:
        """The executions there are, newest first; children too."""
        await self._time.quiet()
        wanted = stored.Filter(state=None if state is None else ExecutionState(state))
        return await reading.list_executions(self._service.store, self._service.workspace, wanted, limit=MOST_LISTED)

    @verb
    async def dead_letters(self, resolution: str | None = "PENDING") -> list[Json]:
        """The dead letters in this state, or all of them, newest first: `{node, failureType, reason, inputs, …}`."""
        await self._time.quiet()
        wanted = dlq.Search(resolution=None if resolution is None else Resolution(resolution))
        return await reading.find_dead_letters(self._service.store, self._service.workspace, wanted, limit=MOST_LISTED)

    @verb
    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = None) -> str:
        """Try a dead letter again, with other inputs if wanted; the id of its execution, which goes on."""
        return await self._service.requeue(letter, overrides)

    @verb
    async def fix(self, letter: str, output: JSON, ports: tuple[str, ...] = ()) -> str:
        """Supply the output a dead letter failed to give; the id of its execution, which goes on."""
        return await self._service.fix(letter, output, ports=ports)

    @verb
    async def discard(self, letter: str) -> None:
        """Close a dead letter without doing anything about it."""
        await self._service.discard(letter)


class TestEngine(EngineVerbs, Blocking):
    """The engine of a plain test: the fixture `ropewalk_engine`. It works while one of its methods is called."""

    __test__ = False  # pytest collects classes by their names

    def __init__(self, local: LocalEngine, stubs: Stubs, loop: Loop) -> None:
        super().__init__(local, stubs)
        self._loop = loop

    def start(self, workflow: "str | Workflow | Mapping[str, JSON]", input: JSON = None, *,  # noqa: A002
              vars: Mapping[str, JSON] | None = None) -> TestExecution:  # noqa: A002  # fmt: skip
        """Accept an execution; it is refused for the same reasons as anywhere."""
        started = self._loop.run(lambda: self._local.start(workflow, input, vars=vars))
        return self.execution(started.id)

    def execution(self, execution: str) -> TestExecution:
        """An execution by its id."""
        return TestExecution(self._time, execution, self._loop)


class AsyncTestEngine(EngineVerbs, Awaiting):
    """The engine of an async test: what `ropewalk.testing.open` gives."""

    async def start(self, workflow: "str | Workflow | Mapping[str, JSON]", input: JSON = None, *,  # noqa: A002
                    vars: Mapping[str, JSON] | None = None) -> AsyncTestExecution:  # noqa: A002  # fmt: skip
        """Accept an execution; it is refused for the same reasons as anywhere."""
        started = await self._local.start(workflow, input, vars=vars)
        return self.execution(started.id)

    def execution(self, execution: str) -> AsyncTestExecution:
        """An execution by its id."""
        return AsyncTestExecution(self._time, execution)
