"""What a scenario is given: an engine behind its service, the world outside, and words to tell a story with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any, TypeVar

from msgspec import structs

from ropewalk.core.errors import Unavailable
from ropewalk.core.events import Event
from ropewalk.core.state import Resolution
from ropewalk.engines.base import Ended, Version
from ropewalk.engines.settings import WorkerSettings
from ropewalk.nodes.base import NodeType
from ropewalk.service import Service, reading
from ropewalk.store import executions
from ropewalk.wiring import Settings, open_service
from tests.engines.judging import judge
from tests.engines.outside import Outside, WatchedTypes

Json = dict[str, Any]

QUICK: Json = {"maxAttempts": 3, "delay": "1ms", "jitter": 0}
ONCE: Json = {"maxAttempts": 1}
DRAIN = 0.2
"""How long an engine that stops waits for its nodes, in seconds."""


def flow(*nodes: Json, edges: str = "", **top: Any) -> Json:
    """`flow(act("a"), act("b"), edges="a->b a->c:error")`, a document."""
    joined = [_edge(each) for each in edges.split()]
    return {"ropewalk": 1, "name": "test", "nodes": list(nodes), "edges": joined, **top}


def _edge(text: str) -> Json:
    ends, _, port = text.partition(":")
    source, _, target = ends.partition("->")
    return {"from": source, "to": target} | ({"on": port} if port else {})


def node(id: str, type: str = "noop", /, **given: Any) -> Json:  # noqa: A002 (the document's words)
    """A node; what is no field of a node is one of its parameters."""
    fields = (
        "forEach", "concurrency", "failureTolerance", "onItemFailure", "deadLetters", "retry", "timeout", "cache",
        "rateLimit", "repeat",
    )  # fmt: skip
    parameters = {name: value for name, value in given.items() if name not in fields}
    # A child is tried again only where its node asks for it.
    retry = {} if type == "subworkflow" else {"retry": QUICK}
    return {
        "id": id,
        "type": type,
        **retry,
        **{name: value for name, value in given.items() if name in fields},
        **({"with": parameters} if parameters else {}),
    }


def act(id: str, value: Any = None, **given: Any) -> Json:  # noqa: A002 (the document's word)
    """A node that hands on its value, after so many failures."""
    return node(id, "act", value=value, **given)


class World:
    """One engine on one store, which can be stopped, killed and started again."""

    def __init__(self, db: str, *types: NodeType) -> None:
        self.db = db
        self.outside = Outside()
        self.default_slots: int | None = None
        self.env = {"REGION": "north"}
        self.types = WatchedTypes.of(self.outside, *types)
        self._native = WorkerSettings(drain_seconds=DRAIN)
        self._opened = AsyncExitStack()
        self.service: Service

    @property
    def limits(self) -> dict[str, int]:
        """How many slots a workspace has, as far as it is limited."""
        return {} if self.default_slots is None else {"default": self.default_slots}

    @property
    def settings(self) -> Settings:
        """What an engine of this world is opened with."""
        return Settings(db=self.db, worker=self._native, default_slots=self.default_slots, env=self.env)

    async def open(self, *, default_slots: int | None = None, **native: Any) -> None:
        """Starts an engine on what the store has, with these settings from now on."""
        self.default_slots = self.default_slots if default_slots is None else default_slots
        self._native = structs.replace(self._native, **native)
        self.service = await self._opened.enter_async_context(open_service(self.settings, self.types))

    async def close(self) -> None:
        """The engine stops as it is meant to."""
        await self._opened.aclose()

    async def restart(self, **settings: Any) -> None:
        await self.close()
        await self.open(**settings)

    async def crash(self) -> None:
        """The engine is gone at once: from now on nothing of what it thinks or does is written."""
        refuse_writes(self.service)
        with suppress(Unavailable):
            await self.close()

    # Telling

    async def save(self, document: Json) -> Version:
        return await self.service.save(document)

    async def start(self, document: Json, given: Any = None, **more: Any) -> str:
        return await self.service.start(await self.save(document), given, **more)

    async def run(self, document: Json, given: Any = None, **more: Any) -> Ended:
        return await self.ended(await self.start(document, given, **more))

    async def ended(self, execution: str) -> Ended:
        return await self.service.ended(execution)

    async def requeue(self, execution: str, overrides: Json | None = None) -> None:
        """Every dead letter of the execution goes back to work."""
        for letter in await self.letters(execution):
            await self.service.requeue(letter["id"], overrides)

    # Asking

    async def until(self, execution: str, kind: type[Event], node: str | None = None, count: int = 1) -> Event:
        """Waits for an event of this kind, about this node; the nth of them."""
        async with aclosing(self.service.engine.watching.follow(execution)) as following:
            async for _, event in following:
                if isinstance(event, kind) and node in (None, getattr(event, "node", None)):
                    count -= 1
                    if not count:
                        return event
        raise AssertionError(f"the execution ended without {kind.__name__} of {node or 'anything'}")

    async def events(self, execution: str, kind: type[Event] | None = None) -> list[Any]:
        story = await reading.recorded(self.service.store, execution)
        return [event for event in story.events if kind is None or isinstance(event, kind)]

    async def details(self, execution: str) -> Json:
        return await reading.get_execution(self.service.store, self.service.store.blobs, "default", execution)

    async def states(self, execution: str) -> str:
        """Where every node stands, in document order: `SUCCESS SKIPPED`."""
        return " ".join(node["state"] for node in (await self.details(execution))["nodes"])

    async def runs(self, execution: str, node: str | None = None) -> list[Json]:
        found = await reading.list_runs(self.service.store, execution)
        return [run for run in found if node in (None, run["node"])]

    async def letters(self, execution: str, resolution: Resolution = Resolution.PENDING) -> list[Json]:
        """The dead letters of an execution, by node and item."""
        found = await reading.list_dead_letters(self.service.store, "default", resolution, limit=200)
        mine = [letter for letter in found if letter["executionId"] == execution]
        return sorted(mine, key=lambda letter: (letter["node"], letter["item"] or 0))

    async def children(self, execution: str) -> list[str]:
        """The executions it started, oldest first."""
        found = await executions.listed(self.service.store, "default", limit=1_000)
        return [each.id for each in reversed(found) if each.parent == execution]


AnyWorld = TypeVar("AnyWorld", bound=World)


def refuse_writes(service: Service) -> None:
    """From now on the store behind this service takes nothing."""

    async def refused(batch: object) -> None:
        raise Unavailable("the process is gone")

    service.store.write = refused  # type: ignore[method-assign]  # a process that is gone has no method to override


def judged_world(db: str, *types: NodeType) -> AbstractAsyncContextManager[World]:
    """A world on the native engine; whatever is done in it, its store must be without fault afterwards."""
    return judged(World(db, *types))


@asynccontextmanager
async def judged(world: AnyWorld) -> AsyncIterator[AnyWorld]:
    """The same for any world."""
    await world.open()
    yield world
    for gate in world.outside.gates.values():
        gate.open()
    await world.close()
    wrong = await judge(world.db, world.outside.effects, world.limits)
    assert wrong == [], wrong


async def at_most(seconds: float, story: Any) -> Any:
    """A story that hangs is a story that fails."""
    async with asyncio.timeout(seconds):
        return await story
