"""A server that is measured: `python -m ropewalk.bench.api_server CONTENDER DB`.

It is started as `ropewalk up` starts its own. The floor is FastAPI as it is usually written: a route with a model for
the body and one for the answer, which stores nothing.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import uvloop
from fastapi import FastAPI
from pydantic import BaseModel

from ropewalk.access.first import ensure_admin
from ropewalk.access.rates import Limits
from ropewalk.access.settings import AccessSettings
from ropewalk.api.app import create_app
from ropewalk.api.doors.server import ServerSettings, address_of, listen, serving
from ropewalk.bench.api_load import START, Ready
from ropewalk.bench.contenders import FLOOR
from ropewalk.bench.processes import say
from ropewalk.bench.queueing import DOCUMENT, Notebook
from ropewalk.engines.process import settle_in
from ropewalk.wiring import Settings, node_types, open_backend

UNLIMITED: Final = AccessSettings(limits=Limits(per_actor=None, per_address=None))


class Body(BaseModel):
    """What the floor is sent."""

    workflowDefinitionId: str  # noqa: N815  # as it is sent
    input: Any = None
    vars: dict[str, Any] = {}
    priority: int = 5


class Answer(BaseModel):
    """What the floor says."""

    queueId: str  # noqa: N815  # as it is sent
    executionId: str  # noqa: N815  # as it is sent
    status: str


def floor() -> FastAPI:
    """The least that takes and gives the same."""
    app = FastAPI()

    @app.post(START, status_code=202, response_model=Answer)
    async def start(body: Body) -> Answer:
        return Answer(queueId=body.workflowDefinitionId, executionId=body.workflowDefinitionId, status="PENDING")

    return app


@asynccontextmanager
async def engine(db: str, notebook: Notebook) -> AsyncIterator[tuple[FastAPI, str, str]]:
    """The API with everything behind it; a token, and the workflow to start."""
    settings = Settings(db=db, access=UNLIMITED)
    async with open_backend(settings, node_types([notebook.node_type()])) as backend:
        token = await ensure_admin(backend.store)
        assert token is not None, "the store is new"
        version = await backend.service("default").save(DOCUMENT)
        yield create_app(backend, "bench"), token, version.workflow


async def serve(app: FastAPI, token: str, workflow: str, notebook: Notebook) -> None:
    """Answers until nothing more is said to this process; then tells when each node began."""
    listener = listen("127.0.0.1", 0)
    settle_in()
    async with serving(app, listener, ServerSettings()):
        say("ready", msgspec.json.encode(Ready(address_of(listener), token, workflow)).decode())
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip() == "notes":
                say("notes", msgspec.json.encode(notebook.began).decode())


async def main(contender: str, db: str) -> None:
    notebook = Notebook()
    if contender == FLOOR:
        await serve(floor(), "none", "none", notebook)
        return
    async with engine(db, notebook) as (app, token, workflow):
        await serve(app, token, workflow, notebook)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
