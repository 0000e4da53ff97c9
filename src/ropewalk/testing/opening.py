"""Opens an engine for one test, on a store that is thrown away afterwards; at the end the store is checked."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ropewalk.configuration import resolve
from ropewalk.engines.base import Custody
from ropewalk.engines.settings import WorkerSettings
from ropewalk.local import LocalEngine
from ropewalk.modules import Catalogue, catalogue, is_file
from ropewalk.nodes.base import NodeType
from ropewalk.service.auditing import Audit
from ropewalk.store.access import Store
from ropewalk.testing.engine import AsyncTestEngine, TestEngine
from ropewalk.testing.stubs import Stubs
from ropewalk.testing.verbs import Loop
from ropewalk.wiring import Settings, open_service

FILE = "test.db"


@asynccontextmanager
async def open(*, nodes: Iterable[NodeType] = (), project: str | Path | None = None,  # noqa: A001
               env: Mapping[str, str] | None = None) -> AsyncIterator[AsyncTestEngine]:  # fmt: skip
    """An engine for an async test.

    It knows the node types given, and those that `ropewalk.toml` in the folder `project` names. `env` is what
    expressions see as `env`, besides what is set there. At the end the store is held to the guarantees.
    """
    async with _opened(nodes, project, env) as (local, stubs):
        yield AsyncTestEngine(local, stubs)


@contextmanager
def open_blocking(*, nodes: Iterable[NodeType] = (), project: str | Path | None = None,
                  env: Mapping[str, str] | None = None) -> Iterator[TestEngine]:  # fmt: skip
    """The same for a plain test; its loop runs while a method of the engine is called."""
    # With a factory the runner leaves the thread's own loop alone, which is that of another plugin perhaps.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        loop, stack = Loop(runner), AsyncExitStack()
        local, stubs = loop.run(lambda: stack.enter_async_context(_opened(nodes, project, env)))
        try:
            yield TestEngine(local, stubs, loop)
        except BaseException as error:
            raised = error
            loop.run(lambda: stack.__aexit__(type(raised), raised, raised.__traceback__))
            raise
        loop.run(stack.aclose)


@asynccontextmanager
async def _opened(nodes: Iterable[NodeType], project: str | Path | None, env: Mapping[str, str] | None
                  ) -> AsyncIterator[tuple[LocalEngine, Stubs]]:  # fmt: skip
    known, set_env = _known(nodes, project)
    with TemporaryDirectory(prefix="ropewalk-test-") as folder:
        settings = Settings(
            db=str(Path(folder) / FILE),
            is_thrown_away=True,
            # A node that still runs when the test is over is stopped, and not waited for.
            worker=WorkerSettings(drain_seconds=0),
            env={**set_env, **(env or {})},
        )
        async with open_service(settings, known.types, known.functions) as service:
            yield LocalEngine(service), Stubs(known.types)
            await _require_sound(service.store, service.engine.custody)


def _known(nodes: Iterable[NodeType], project: str | Path | None) -> tuple[Catalogue, Mapping[str, str]]:
    """These node types, and those and the `env` of a project.

    Nothing else of its settings: a test sends no mail by accident.
    """
    if project is None:
        return catalogue((), nodes), {}
    said = resolve({}, {}, folder=str(project))
    modules = [str(Path(project) / name) if is_file(name) else name for name in said["nodes"]]
    return catalogue(modules, nodes), said["env"]


async def _require_sound(store: Store, custody: Custody) -> None:
    """AssertionError if a log breaks an invariant, or a table says other than the logs: a fault of the engine."""
    audit = Audit(store, load_blob=store.blobs.get, read_file=store.blobs.chunks, custody=custody)
    found = [violation async for each in audit.executions() for violation in each.violations]
    found += await audit.together()
    assert not found, "the store breaks what Ropewalk guarantees; please report it: " + "; ".join(map(str, found[:10]))
