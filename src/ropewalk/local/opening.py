"""How a program gets an engine: `open` for programs with a loop, `run` for those without."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ropewalk.configuration import resolve
from ropewalk.core.canonical import JSON
from ropewalk.engines.process import and_no_longer, while_executing
from ropewalk.local.definitions import Source
from ropewalk.local.engine import LocalEngine, require_workflow
from ropewalk.modules import catalogue
from ropewalk.nodes.base import NodeType
from ropewalk.wiring import Settings, open_service


@asynccontextmanager
async def open(  # noqa: A001
    url: str | None = None, *, nodes: Iterable[NodeType] = (), config: str | None = None
) -> AsyncIterator[LocalEngine]:
    """Execute on a store; the executions that were under way there go on.

    Name the `@node` functions of unfinished executions in `nodes`: they are needed before a workflow brings them. What
    is not said here is taken from the environment, then from `config`, else from `ropewalk.toml` in the current
    folder, as the commands do; without any of them the store is `ropewalk.db`.
    """
    said = resolve({"db": url}, file=config)
    known = catalogue(said["nodes"], nodes)
    known.types.tell_of_missing()
    with while_executing():
        async with open_service(Settings.of(said), known.types, known.functions) as service:
            yield LocalEngine(service)


def run(workflow: Source, input: JSON = None, *, db: str | None = None,  # noqa: A002
        vars: Mapping[str, JSON] | None = None) -> JSON:  # noqa: A002  # fmt: skip
    """Execute a workflow to its end and return its output; without `db` nothing is kept.

    Everything but the store is set as for `open`.
    """
    require_workflow(workflow)
    _require_no_loop()
    if db is not None:
        return _loop(_run(workflow, input, vars, db))
    with TemporaryDirectory(prefix="ropewalk-") as folder:
        return _loop(_run(workflow, input, vars, str(Path(folder) / "run.db")))


def _require_no_loop() -> None:
    """Before there is a coroutine, which would never be awaited then."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("ropewalk.run has a loop of its own; where one runs already, await what ropewalk.open gives")


async def _run(workflow: Source, value: JSON, overrides: Mapping[str, JSON] | None, db: str) -> JSON:
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
