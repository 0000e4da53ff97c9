"""Asking an app as a server does, without one: any route, WebSockets and endless streams included."""

import asyncio
import json
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message

PATIENCE = 10.0
SOCKET = "WEBSOCKET"


class Reply(NamedTuple):
    """How it began: the status (101 for an accepted WebSocket), and what had come by then."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class _Talk:
    """One request, from its first byte to the moment the caller hangs up."""

    def __init__(self, scope: dict[str, Any], body: bytes) -> None:
        self.scope = scope
        self.began: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.body = bytearray()
        self._sent = [{"type": "http.request", "body": body}]
        if scope["type"] == "websocket":
            self._sent = [{"type": "websocket.connect"}]

    async def receive(self) -> Message:
        if self._sent:
            return self._sent.pop()
        await asyncio.shield(self.began)
        return {
            "type": "websocket.disconnect" if self.scope["type"] == "websocket" else "http.disconnect",
            "code": 1001,
        }

    async def send(self, message: Message) -> None:
        if message["type"].endswith((".response.start", ".accept", ".close")) and not self.began.done():
            self.began.set_result(message)
        if message["type"].endswith(".response.body"):
            self.body += message.get("body", b"")

    def reply(self) -> Reply:
        first = self.began.result()
        status = {"websocket.accept": 101, "websocket.close": 403}.get(first["type"]) or first["status"]
        headers = {name.decode(): value.decode() for name, value in first.get("headers", [])}
        return Reply(status, headers, bytes(self.body))


async def ask(
    app: ASGIApp, method: str, path: str, headers: list[tuple[str, str]], body: Any = None, client: str = "127.0.0.1"
) -> Reply:
    """What the app answers; it is hung up on as soon as the answer has begun."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sized = headers if body is None else [*headers, ("Content-Length", str(len(content)))]
    talk = _Talk(_scope(method, path, sized, client), content)
    task = asyncio.ensure_future(app(talk.scope, talk.receive, talk.send))
    try:
        await asyncio.wait_for(task, PATIENCE)
    except TimeoutError:
        assert talk.began.done(), f"{method} {path} does not answer"
    return talk.reply()


def _scope(method: str, path: str, headers: list[tuple[str, str]], client: str) -> dict[str, Any]:
    where, _, query = path.partition("?")
    said = {name.lower() for name, _ in headers}
    usual = [("host", "ropewalk.test"), ("content-type", "application/json")]
    given = [*(each for each in usual if each[0] not in said), *headers]
    scope = {
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "path": where,
        "raw_path": where.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
        "client": (client, 1234),
        "server": ("ropewalk.test", 80),
        "extensions": {"websocket.http.response": {}},
    }
    if method == SOCKET:
        return scope | {"type": "websocket", "scheme": "ws", "subprotocols": []}
    return scope | {"type": "http", "scheme": "http", "method": method}
