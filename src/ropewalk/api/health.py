"""Whether this server lives, and whether it can do its work."""

from fastapi import Request

from ropewalk.api.routes import Routes
from ropewalk.api.shapes import Answer
from ropewalk.store import keys

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
    """The store answers too; 503 while it does not."""
    await keys.has_any(request.app.state.office.store)
    return {"status": "ready"}
