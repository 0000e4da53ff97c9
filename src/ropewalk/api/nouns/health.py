"""Whether this server lives, and whether it can do its work."""

from collections.abc import Sequence
from typing import Any, Final

from fastapi import Request

from ropewalk.api.backend import Backend
from ropewalk.api.routes import Routes
from ropewalk.api.shapes.base import Answer
from ropewalk.core.duration import MINUTE
from ropewalk.core.errors import Unavailable
from ropewalk.core.instant import rfc3339
from ropewalk.store.access import Store

routes = Routes("", "Health")


SHOWN: Final = 60 * MINUTE
"""How long an incident is part of the answer: it is over, and an operator has to know of it."""


class Incident(Answer):
    """An incident that is over, and after which an operator has to look at what is lost."""

    at: str
    what: str


class Health(Answer):
    """How the server is."""

    status: str


class Readiness(Health):
    """How the server is, and what has happened to its store in the last hour."""

    incidents: Sequence[Incident] = ()


@routes.public("HEAD", "/healthz", response_model=Health, include_in_schema=False)
@routes.public("GET", "/healthz", response_model=Health)
async def get_health() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@routes.public("HEAD", "/readyz", response_model=Readiness, include_in_schema=False)
@routes.public("GET", "/readyz", response_model=Readiness)
async def get_readiness(request: Request) -> dict[str, Any]:
    """The store can be read and written; 503 while it cannot, or once it was found damaged or its file was replaced,
    or while a worker drains.

    For an hour it also tells that the database went back in time.
    """
    backend: Backend = request.app.state.backend
    if backend.is_leaving:
        raise Unavailable("this process is leaving")
    store: Store = backend.store
    await store.check()
    return {"status": "ready", "incidents": _incidents(store)}


def _incidents(store: Store) -> list[dict[str, str]]:
    """Without the names of workers: anyone may ask."""
    since = store.now() - SHOWN
    return [
        {"at": rfc3339(rewind.at), "what": "the database went back in time"}
        for rewind in store.rewinds
        if rewind.at > since
    ]
