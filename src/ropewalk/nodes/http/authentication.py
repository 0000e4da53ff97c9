"""How a credential proves to a server who asks: one way for each type.

Each way signs one hop, and refuses a host that the credential is not bound to. A call drops it at another origin.
"""

import base64
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.http.aws import AwsSignature
from ropewalk.nodes.http.call import Authentication, Request
from ropewalk.nodes.http.digest import Digest
from ropewalk.nodes.http.headers import with_header
from ropewalk.nodes.http.oauth2 import AccessToken

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

TYPES: Final = (
    *("http.basic", "http.bearer", "http.header", "http.query", "http.digest"),
    *("oauth2.client", "oauth2.refresh", "aws"),
)
"""The types of credentials that any server may be called with."""


def authentication_of(credential: Credential, context: NodeContext) -> Authentication:
    """What proves with this credential who asks."""
    return Bound(credential, _way(credential, context))


def _way(credential: Credential, context: NodeContext) -> Authentication:
    match credential.type:
        case "http.digest":
            return Digest(credential.values["username"], credential.values["password"])
        case "oauth2.client" | "oauth2.refresh" | "google":
            return AccessToken(credential, context)
        case "aws":
            return AwsSignature(credential, context)
        case "http.basic" | "http.bearer" | "http.header" | "http.query":
            return Plain(credential)
        case _:
            return Unsigned()


class Bound:
    """A way that is taken to the hosts of its credential alone."""

    def __init__(self, credential: Credential, way: Authentication) -> None:
        self._credential = credential
        self._way = way

    async def sign(self, request: Request) -> Request:
        self._credential.require_host(request.url.host or "")
        return await self._way.sign(request)

    def takes_up(self, headers: "CIMultiDictProxy[str]") -> bool:
        return self._way.takes_up(headers)


class Plain:
    """A secret that is sent as it is."""

    def __init__(self, credential: Credential) -> None:
        self._type = credential.type
        self._values = credential.values

    async def sign(self, request: Request) -> Request:
        values = self._values
        match self._type:
            case "http.basic":
                login = base64.b64encode(f"{values['username']}:{values['password']}".encode()).decode()
                return with_header(request, "Authorization", f"Basic {login}")
            case "http.header":
                return with_header(request, values["name"], values["value"])
            case "http.query":
                return replace(request, url=request.url.update_query({values["name"]: values["value"]}))
            case _:
                return with_header(request, "Authorization", f"Bearer {values['token']}")

    def takes_up(self, headers: "CIMultiDictProxy[str]") -> bool:
        return False


class Unsigned:
    """A request that carries its secrets already, where its node type has put them."""

    async def sign(self, request: Request) -> Request:
        return request

    def takes_up(self, headers: "CIMultiDictProxy[str]") -> bool:
        return False
