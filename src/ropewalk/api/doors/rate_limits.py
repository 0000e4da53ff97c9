"""The rate limit of each address: checked before anything is read or looked up."""

from starlette.responses import Response
from starlette.types import Scope

from ropewalk.access.rates import address_of, is_loopback
from ropewalk.api.backend import Backend
from ropewalk.api.shapes.problems import problem


def refusal(scope: Scope) -> Response | None:
    """The answer to an address that asks too often; to a WebSocket it is given in place of the handshake.

    This machine's own programs are not held back: a limit on requests would not keep them from loading the machine.
    """
    client = scope.get("client")
    if client is None or is_loopback(client[0]):
        return None
    backend: Backend = scope["app"].state.backend
    wait = backend.rate_limits.addresses.take(address_of(client[0]), backend.store.now())
    if wait is None:
        return None
    return problem(429, "too many requests from your address", headers={"Retry-After": str(wait)})
