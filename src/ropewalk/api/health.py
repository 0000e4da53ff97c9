"""Whether this server lives, and whether it can do its work."""

from fastapi import Request

from ropewalk.api.routes import Routes
from ropewalk.api.shapes import Answer

routes = Routes("", "Health")


class Health(Answer):
    """How the server is."""

    status: str


@routes.public("GET", "/healthz", response_model=Health)
async def get_health() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@routes.public("GET", "/readyz", response_model=Health)
async def get_readiness(request: Request) -> dict[str, str]:
    """The store answers and can be written; 503 while it does not, or its disk is full."""
    # Nothing of its own: on a file a transaction leaves the time there, and everywhere it asks whether we may write.
    async with request.app.state.office.store.transaction():
        return {"status": "ready"}
