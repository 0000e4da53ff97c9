"""Ropewalk inside a Python program: open a store, start workflows, wait for results.

async with ropewalk.open("sqlite:///jobs.db") as engine:
    execution = await engine.start(workflow, {"orderId": "7"})
    print(await execution.result())
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ropewalk.core import log
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import ExecutionEnded, RopewalkError
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native.process import and_no_longer
from ropewalk.nodes.base import NodeType
from ropewalk.service import Service, reading
from ropewalk.wiring import Settings, node_types, open_service
from ropewalk.workflow import Workflow


class LocalExecution:
    """One execution that was started here, or is known by its id."""

    def __init__(self, service: Service, execution: str) -> None:
        self._service = service
        self.id = execution

    async def result(self) -> JSON:
        """Wait for the end; the output, or `ExecutionEnded` if there is none."""
        ended = await self._service.ended(self.id)
        if ended.state is not ExecutionState.SUCCESS:
            raise ExecutionEnded(self.id, ended.state, ended.error)
        if ended.blob is not None:
            return msgspec.json.decode(await self._service.store.blobs.get(ended.blob.hash))
        return ended.output

    async def state(self) -> ExecutionState:
        return ExecutionState((await self.details())["state"])

    async def details(self) -> dict[str, Any]:
        """The execution with its nodes, as recorded."""
        service = self._service
        return await reading.get_execution(service.store, service.store.blobs, service.workspace, self.id)

    async def events(self, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Every event, those recorded and those to come, until the end."""
        async for seq, event in self._service.engine.follow(self.id, after):
            yield log.envelope(self.id, seq, event)

    async def signal(self, name: str, payload: JSON = None) -> None:
        await self._service.signal(self.id, name, payload)

    async def approve(self, node: str, payload: JSON = None, *, item: int | None = None) -> None:
        """Answer an approval; `item` is the place in its list of the one that a node with `for_each` asks about."""
        await self._service.decide(self.id, node, approved=True, payload=payload, item=item)

    async def reject(self, node: str, payload: JSON = None, *, item: int | None = None) -> None:
        await self._service.decide(self.id, node, approved=False, payload=payload, item=item)

    async def pause(self) -> None:
        await self._service.pause(self.id)

    async def resume(self) -> None:
        await self._service.resume(self.id)

    async def cancel(self, reason: str | None = None) -> None:
        await self._service.cancel(self.id, reason=reason)

    async def retry(self) -> None:
        """Give every failed node another chance, in this execution."""
        await self._service.retry(self.id)

    async def rerun(self, node: str) -> "LocalExecution":
        """A new execution that keeps every result but those of `node` and of what is behind it."""
        return LocalExecution(self._service, await self._service.rerun(self.id, node))


class LocalEngine:
    """A store that this process owns, and the executions on it."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def start(
        self, workflow: "Workflow | Mapping[str, JSON]", input: JSON = None, *,  # noqa: A002
        vars: Mapping[str, JSON] | None = None,  # noqa: A002
    ) -> LocalExecution:  # fmt: skip
        """Accept an execution durably; from here on it survives any crash."""
        _require_workflow(workflow)
        document = dict(workflow) if isinstance(workflow, Mapping) else self._learn(workflow)
        version = await self.service.save(document)
        return LocalExecution(self.service, await self.service.start(version, input, vars))

    def _learn(self, workflow: Workflow) -> dict[str, JSON]:
        """Make the functions of a workflow known before its document is checked."""
        for each in workflow.node_types:
            known = self.service.types.get(each.name)
            if known is None:
                self.service.types.register(each)
                self.service.engine.held.learnt(self.service.workspace, each.name)
            elif known is not each:
                raise RopewalkError(f"two different node types are named {each.name!r}; rename one of them")
        return workflow.document()

    def execution(self, execution: str) -> LocalExecution:
        """An execution by its id."""
        return LocalExecution(self.service, execution)

    async def signal(self, execution: str, name: str, payload: JSON = None) -> None:
        await self.service.signal(execution, name, payload)

    async def publish(self, subject: str, payload: JSON = None) -> int:
        """Publish an event; how many waits it ended."""
        return await self.service.publish(subject, payload)


@asynccontextmanager
async def open(url: str = "sqlite:///ropewalk.db", *, nodes: Iterable[NodeType] = ()) -> AsyncIterator[LocalEngine]:  # noqa: A001
    """Own a store and execute on it; whatever was under way there goes on.

    Name the `@node` functions of unfinished executions in `nodes`: they are needed before a workflow brings them.
    """
    types = node_types(nodes)
    types.tell_of_missing()
    async with open_service(Settings.from_environment(db=url), types=types) as service:
        yield LocalEngine(service)


def run(workflow: "Workflow | Mapping[str, JSON]", input: JSON = None, *, db: str | None = None,  # noqa: A002
        vars: Mapping[str, JSON] | None = None) -> JSON:  # noqa: A002  # fmt: skip
    """Execute a workflow to its end and return its output; without `db` nothing is kept."""
    _require_workflow(workflow)
    _require_no_loop()
    if db is not None:
        return _loop(_run(workflow, input, vars, db))
    with TemporaryDirectory(prefix="ropewalk-") as folder:
        return _loop(_run(workflow, input, vars, str(Path(folder) / "run.db")))


def _require_workflow(given: object) -> None:
    if not isinstance(given, Workflow | Mapping):
        raise TypeError(f"a workflow or its document is needed, not {given!r}; Workflow.load reads one from a file")


def _require_no_loop() -> None:
    """Before there is a coroutine, which nobody would await then."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("ropewalk.run has a loop of its own; where one runs already, await what ropewalk.open gives")


async def _run(
    workflow: "Workflow | Mapping[str, JSON]", value: JSON, overrides: Mapping[str, JSON] | None, db: str
) -> JSON:
    types = () if isinstance(workflow, Mapping) else workflow.node_types
    async with open(db, nodes=types) as engine:
        return await (await engine.start(workflow, value, vars=overrides)).result()


def _loop(coroutine: Any) -> JSON:
    """On uvloop where there is one; the standard loop does as well, only slower."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(and_no_longer(coroutine))
    return uvloop.run(and_no_longer(coroutine))
