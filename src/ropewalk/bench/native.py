"""The native engine as its users have it: through the service, with a registered function as the node."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ropewalk.bench.contenders import Broken, Execute, Prepare
from ropewalk.bench.shapes import NODE_TYPE, Shape, work
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Version
from ropewalk.nodes.function import FunctionNode
from ropewalk.service import Service
from ropewalk.wiring import Settings, node_types, open_service


@asynccontextmanager
async def opened(db: str) -> AsyncIterator[Prepare]:
    """The engine on a store of its own."""
    async with serving(Settings(db=db)) as service:

        async def prepare(shape: Shape) -> Execute:
            version = await service.save(shape.document())
            return lambda: execute(service, version)

        yield prepare


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[Service]:
    """A worker that knows the node."""
    async with open_service(settings, types=node_types([FunctionNode(work, name=NODE_TYPE)])) as service:
        yield service


async def execute(service: Service, version: Version) -> None:
    await finished(service, await service.start(version))


async def finished(service: Service, execution: str) -> None:
    """Wait for the end; only a success counts."""
    ended = await service.ended(execution)
    if ended.state is not ExecutionState.SUCCESS:
        raise Broken(f"execution {execution} ended {ended.state}: {ended.error}")
