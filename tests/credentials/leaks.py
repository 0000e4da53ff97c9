"""Ways in which a counterpart, or the code of a node, may tell a secret; each is tried on a whole engine."""

import asyncio
import base64
import gzip
import json
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from aiohttp import web
from msgspec import Struct

from ropewalk import NodeContext, NodeFailure, Output, node
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.waits import Approval
from ropewalk.nodes.base import NodeType

Answer = Callable[[web.Request, str], Awaitable[web.StreamResponse]]


class Leak(Struct, frozen=True):
    """One way: the type and values of the credential (`@` is the secret, `$` the server) and the node that has it."""

    kind: str = "http.bearer"
    values: Mapping[str, Any] = MappingProxyType({"token": "@"})
    type: str = "http.request"
    given: Mapping[str, Any] = MappingProxyType({"url": "$"})
    answer: Answer | None = None
    raw: Callable[[str], bytes] | None = None
    """What a server says that speaks no proper HTTP."""
    more: Mapping[str, Any] = {}
    hosts: tuple[str, ...] = ()
    smtp: str | None = None
    """What a mail server says to a login."""


def echo(status: int = 200, form: Callable[[str], str] = str, content_type: str = "text/plain",
         headers: Mapping[str, str] | None = None) -> Answer:  # fmt: skip
    async def answer(request: web.Request, secret: str) -> web.StreamResponse:
        told = {name: text.replace("@", quote(secret)) for name, text in (headers or {}).items()}
        return web.Response(status=status, text=form(secret), content_type=content_type, headers=told)

    return answer


def in_headers(*names: str, status: int = 200) -> Answer:
    async def answer(request: web.Request, secret: str) -> web.StreamResponse:
        return web.Response(status=status, headers=dict.fromkeys(names, f"it was {secret}"))

    return answer


async def closes_early(request: web.Request, secret: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100000"})
    await response.prepare(request)
    await response.write(secret.encode())
    assert request.transport is not None
    request.transport.close()
    return response


async def never_ends(request: web.Request, secret: str) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(secret.encode())
    await asyncio.Event().wait()
    return response


async def zipped(request: web.Request, secret: str) -> web.StreamResponse:
    return web.Response(body=gzip.compress(secret.encode()), headers={"Content-Encoding": "gzip"})


async def issues(request: web.Request, secret: str) -> web.StreamResponse:
    """An issuer whose token, and whose next refresh token, is the secret; and a service that repeats it."""
    if request.path.endswith("/token"):
        return web.json_response({"access_token": secret, "expires_in": 3600, "refresh_token": secret})
    return web.Response(status=500, text=request.headers.get("Authorization", ""))


async def repeats_all(request: web.Request, secret: str) -> web.StreamResponse:
    return web.Response(status=400, text=f"{request.path_qs} {dict(request.headers)} {await request.text()}")


def b64(secret: str) -> str:
    return base64.b64encode(f"shop:{secret}".encode()).decode()


def escaped(secret: str) -> str:
    return "".join(f"\\u{ord(each):04x}" for each in secret)


OAUTH = {"tokenUrl": "$/token", "clientId": "shop", "clientSecret": "@"}
QUERY = {"name": "api_key", "value": "@"}


# What the code of a node may do


@node
async def raises(context: NodeContext) -> None:
    raise ValueError(await secret_of(context))


@node
async def raises_from(context: NodeContext) -> None:
    try:
        raise KeyError({"key": await secret_of(context)})
    except KeyError as error:
        raise RuntimeError("see above") from error


@node
async def raises_together(context: NodeContext) -> None:
    secret = await secret_of(context)
    raise ExceptionGroup("many", [ValueError(secret), ExceptionGroup(secret, [OSError(5, secret, secret)])])


@node
async def raises_in_class(context: NodeContext) -> None:
    raise type(f"Bad_{await secret_of(context)}", (Exception,), {})("no")


@node
async def leaves(context: NodeContext) -> None:
    raise SystemExit(await secret_of(context))


@node
async def says_no(context: NodeContext) -> None:
    secret = await secret_of(context)
    raise NodeFailure(RunError(ErrorType.PERMANENT, secret, secret, None, None, 418, secret))


@node
async def notes(context: NodeContext) -> None:
    error = ValueError("no")
    error.add_note(await secret_of(context))
    raise error


@node
async def logs(context: NodeContext) -> None:
    secret = await secret_of(context)
    context.log(f"it is {secret}", key=secret, deep={secret: [secret]}, hexed=secret.encode().hex())


@node
async def returns(context: NodeContext) -> dict[str, Any]:
    secret = await secret_of(context)
    return {secret: [{"deep": (secret, secret.encode().hex(), b64(secret), quote(secret, safe=""), secret[::-1])}]}


@node
async def returns_large(context: NodeContext) -> str:
    return f"{'x' * 100_000}{await secret_of(context)}{'y' * 100_000}"


@node
async def returns_no_json(context: NodeContext) -> Any:
    return {await secret_of(context)}


@node
async def stays(context: NodeContext) -> None:
    secret = await secret_of(context)
    try:
        await asyncio.Event().wait()
    finally:
        context.log(secret)


@node
async def tells_all(context: NodeContext) -> dict[str, Any]:
    found = await context.credential()
    return {"repr": repr(found), "text": str(found), "context": repr(context)}


@node
async def takes_another_type(context: NodeContext) -> None:
    await context.credential("", "smtp")


class Asks(NodeType):
    """Waits for a person, and puts the secret into the title."""

    name = "asks"
    credentials = {"": ()}  # noqa: RUF012 -- of a test

    async def run(self, parameters: Any, context: NodeContext) -> Any:
        return Approval(await secret_of(context))


class Ports(NodeType):
    """Takes a port that is named like the secret."""

    name = "ports"
    credentials = {"": ()}  # noqa: RUF012 -- of a test
    ports = None

    async def run(self, parameters: Any, context: NodeContext) -> Any:
        return Output("x", (await secret_of(context),))


async def secret_of(context: NodeContext) -> str:
    found = await context.credential()
    assert found is not None
    return str(found.values["token"])


NODES = (
    raises, raises_from, raises_together, raises_in_class, leaves, says_no, notes, logs, returns, returns_large,
    returns_no_json, stays, tells_all, takes_another_type, Asks(), Ports(),
)  # fmt: skip


def of_code(name: str, **more: Any) -> Leak:
    return Leak(type=name, given={}, more=more)


def of_server(answer: Answer, **more: Any) -> Leak:
    return Leak(answer=answer, **more)


TEXT = {"url": "$", "responseType": "text"}
LEAKS: Mapping[str, Leak] = {
    # A server that repeats the secret
    "in the body of an answer": of_server(echo()),
    "in the body of a refusal": of_server(echo(404)),
    "in the body of a failure": of_server(echo(503)),
    "in JSON": of_server(echo(form=lambda s: json.dumps({s: [s]}), content_type="application/json")),
    "in JSON that is escaped": of_server(echo(400, lambda s: f'{{"a": "{escaped(s)}"}}', "application/json")),
    "in JSON that is broken": of_server(echo(form=lambda s: f'{{"a": "{s}', content_type="application/json")),
    "in JSON where none is": of_server(echo(), given={"url": "$", "responseType": "json"}),
    "in base64": of_server(echo(400, b64)),
    "in base64 at another place": of_server(echo(400, lambda s: b64(f"x{s}"))),
    "in base64 for addresses": of_server(echo(form=lambda s: base64.urlsafe_b64encode(s.encode()).decode())),
    "in hex": of_server(echo(400, lambda s: s.encode().hex())),
    "in hex and capitals": of_server(echo(form=lambda s: s.encode().hex().upper())),
    "escaped as in an address": of_server(echo(400, lambda s: quote(s, safe=""))),
    "with every character escaped": of_server(echo(form=lambda s: "".join(f"%{ord(c):02x}" for c in s))),
    "in quoted-printable": of_server(echo(400, lambda s: "".join(f"={ord(c):02X}" for c in s))),
    "in capitals": of_server(echo(400, str.upper)),
    "backwards": of_server(echo(400, lambda s: s[::-1])),
    "many times": of_server(echo(400, lambda s: f"{s}{s} {s}\n{s}")),
    "where an excerpt is cut": of_server(echo(400, lambda s: "x" * 4_080 + s * 3)),
    "where another excerpt is cut": of_server(echo(400, lambda s: "x" * 985 + s * 3)),
    "in a long answer": of_server(echo(form=lambda s: "x" * 100_000 + s + "y" * 100_000), given=TEXT),
    "in a header": of_server(in_headers("X-Debug", "WWW-Authenticate"), given=TEXT),
    "in a header of a refusal": of_server(in_headers("WWW-Authenticate", "Retry-After", status=401)),
    "in where it redirects to": of_server(echo(302, headers={"Location": "/@"})),
    "in a redirect to another origin": of_server(echo(307, headers={"Location": "http://127.0.0.1:1/@"})),
    "in a redirect that is refused": of_server(echo(302, headers={"Location": "ftp://@"})),
    "compressed": of_server(zipped, given=TEXT),
    "in an answer that ends early": of_server(closes_early),
    "in an answer that never ends": of_server(never_ends, given={"url": "$", "timeout": "200ms"}),
    "in the words of a status": Leak(raw=lambda s: f"HTTP/1.1 500 {s}\r\nContent-Length: 0\r\n\r\n".encode()),
    "in no HTTP at all": Leak(raw=lambda s: f"{s}\r\n\r\n".encode()),
    "in a header that is none": Leak(raw=lambda s: f"HTTP/1.1 200 OK\r\n{s}\r\n\r\n".encode()),
    "in a length that is none": Leak(raw=lambda s: f"HTTP/1.1 200 OK\r\nContent-Length: {s}\r\n\r\n".encode()),
    "in chunks that are none": Leak(raw=lambda s: f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{s}".encode()),
    # How it is sent
    "as a password": of_server(repeats_all, kind="http.basic", values={"username": "shop", "password": "@"}),
    "in a header of its own": of_server(repeats_all, kind="http.header", values={"name": "X-Key", "value": "@"}),
    "in the query": of_server(repeats_all, kind="http.query", values=QUERY),
    "in the query of a server that is away": Leak("http.query", QUERY, given={"url": "http://127.0.0.1:1/"}),
    "in the query of a host that is not public": Leak("http.query", QUERY, given={"url": "http://10.0.0.1/"}),
    "in the query of a host that it is not for": Leak("http.query", QUERY, hosts=("api.example.org",)),
    "as a digest": of_server(repeats_all, kind="http.digest", values={"username": "shop", "password": "@"}),
    "to an issuer that repeats it": of_server(repeats_all, kind="oauth2.client", values=OAUTH),
    "to an issuer in the body": of_server(repeats_all, kind="oauth2.client", values=OAUTH | {"sendAs": "body"}),
    "to an issuer that gives no token": of_server(echo(), kind="oauth2.client", values=OAUTH),
    "as a token that is repeated": of_server(issues, kind="oauth2.client", values=OAUTH | {"clientSecret": "other"}),
    "as a refresh token": of_server(
        issues, kind="oauth2.refresh", values=OAUTH | {"clientSecret": "other", "refreshToken": "@"}
    ),
    "in a signature": of_server(
        repeats_all,
        kind="aws",
        values={"accessKeyId": "a", "secretAccessKey": "@", "sessionToken": "@", "service": "s3"},
    ),
    "to a mail server that refuses it": Leak("smtp", {}, "email.send", {"to": "a@example.org"}, smtp="535 no: {}"),
    "to a mail server in base64": Leak("smtp", {}, "email.send", {"to": "a@example.org"}, smtp="454 no: {b64}"),
    "as a key that is none": Leak("generic", {"value": "@"}, "crypto.sign", {"value": "x"}),
    "as a key in no hex": Leak("generic", {"value": "@"}, "crypto.hmac", {"value": "x", "readKey": "hex"}),
    # How the node is carried out
    "from a map": of_server(echo(404), more={"forEach": [1, 2, 3]}),
    "from the cache": of_server(echo(), more={"cache": {"ttl": "1h"}}),
    "after retries": of_server(echo(503), more={"retry": {"maxAttempts": 3, "delay": "1ms"}}),
    # What code does
    **{f"by code that {each.name}": of_code(each.name) for each in NODES if each.name not in ("stays",)},
    "by code that stays too long": of_code("stays", timeout="100ms"),
}
