"""No secret of a credential is told: not by the store, the log, the traces or any answer, whatever goes wrong.

Every way of `leaks.py` is carried out on one engine behind its API, each with a secret of its own; then everything that
was written is searched for that secret, in every form that a reader could turn back.
"""

import asyncio
import base64
import hashlib
import io
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiosmtpd.smtp import SMTP, AuthResult
from msgspec import Struct

from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.api.app import create_app
from ropewalk.api.backend import Backend
from ropewalk.store import dlq
from ropewalk.telemetry.logs import Format, logs_to
from ropewalk.wiring import Settings, TelemetrySettings, node_types, open_service
from tests.api.house import KEY, House
from tests.credentials.leaks import LEAKS, NODES, Leak, b64
from tests.telemetry.receiver import Receiver, receiving

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATIENCE = 20.0
SHORTEST = 10
"""So many characters of a secret in a row are a leak."""
READS = (
    "/workflow/executions/{}", "/workflow/executions/{}/nodes", "/workflow/executions/{}/events?limit=200",
    "/workflow/executions/{}/runs", "/workflow/executions/{}/explain", "/workflow/executions/{}/output",
    "/workflow/runs?executionId={}", "/workflow/dead-letters?limit=200", "/workflow/dead-letters/groups",
    "/activity?limit=200", "/breakers?limit=200", "/credentials", "/credentials/{name}", "/approvals",
    "/workflow/executions?limit=200",
)  # fmt: skip


class Scene(Struct, frozen=True):
    """An engine with its API, where it writes, and where its log and its traces go."""

    house: House
    folder: Path
    log: io.StringIO
    traces: Receiver
    stack: AsyncExitStack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    folder, log = tmp_path_factory.mktemp("canary"), io.StringIO()
    async with AsyncExitStack() as stack:
        traces = stack.enter_context(receiving())
        stack.enter_context(logs_to(log, Format.JSON))
        logging.getLogger("ropewalk").setLevel(logging.DEBUG)
        settings = Settings(
            db=str(folder / "ropewalk.db"), allow_hosts=("127.0.0.1",),
            telemetry=TelemetrySettings(otlp_endpoint=traces.endpoint),
        )  # fmt: skip
        inner = await stack.enter_async_context(AsyncExitStack())
        service = await inner.enter_async_context(open_service(settings, node_types(NODES)))
        backend = await Backend.open(service.store, service.of, key=KEY)
        async with service.store.transaction() as tx:
            wanted = keys.Wanted(workspace="default", name="root", role=Role.ADMIN, is_root=True)
            _, root = await keys.make(tx, wanted, "test", service.store.now())
        yield Scene(House(create_app(backend, "test"), backend, service, root), folder, log, traces, inner)


def secret_of(name: str) -> str:
    """A secret of this way alone, with characters that addresses and JSON escape."""
    made = base64.b64encode(hashlib.sha256(name.encode()).digest()).decode()
    return f"{made[:9]}/{made[9:18]}+%{made[18:27]}=&{made[27:36]}"


# The counterparts


async def served(stack: AsyncExitStack, leak: Leak, secret: str) -> str:
    """The address of the server that repeats the secret in this way."""
    if leak.raw is not None:
        return f"http://127.0.0.1:{await _raw(stack, leak.raw(secret))}"

    async def handle(request: web.Request) -> web.StreamResponse:
        assert leak.answer is not None
        return await leak.answer(request, secret)

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


async def _raw(stack: AsyncExitStack, said: bytes) -> int:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    stack.callback(server.close)
    return int(server.sockets[0].getsockname()[1])


async def mailing(stack: AsyncExitStack, leak: Leak, secret: str) -> dict[str, Any]:
    """The values of a credential for a mail server that answers a login so."""
    said = str(leak.smtp).format(secret, b64=b64(secret))

    def refuse(server: Any, session: Any, envelope: Any, mechanism: Any, data: Any) -> AuthResult:
        return AuthResult(success=False, handled=False, message=said)

    def session() -> SMTP:
        return SMTP(object(), hostname="test", authenticator=refuse, auth_require_tls=False)

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0)
    stack.callback(server.close)
    about = {"host": "127.0.0.1", "port": server.sockets[0].getsockname()[1], "tls": "none"}
    return {**about, "username": "shop", "password": secret, "sender": "shop@example.org"}


def filled(value: Any, url: str, secret: str) -> Any:
    if isinstance(value, Mapping):
        return {name: filled(part, url, secret) for name, part in value.items()}
    return value.replace("$", url).replace("@", secret) if isinstance(value, str) and "example" not in value else value


# The search


def forms(secret: str, step: int) -> Iterator[bytes]:
    """What a reader could turn back into the secret, or into a good part of it; in small letters, but for base64."""
    for start in range(0, len(secret) - SHORTEST + 1, step):
        part = secret[start : start + SHORTEST]
        yield from (part.lower().encode(), part[::-1].lower().encode(), part.encode().hex().encode())
        yield "".join(f"%{ord(each):02x}" for each in part).encode()
        yield "".join(f"\\u{ord(each):04x}" for each in part).encode()


def words(secret: str) -> Iterator[bytes]:
    """The same in base64, at each of its three places."""
    for ahead in range(3):
        whole = base64.b64encode(b"\0" * ahead + secret.encode())
        yield whole[4:24]
        yield base64.urlsafe_b64encode(b"\0" * ahead + secret.encode())[4:24]


def leaked(found: Mapping[str, bytes], secrets: Iterable[str], step: int = 1) -> list[str]:
    """Where any of the secrets is."""
    told = []
    for where, text in found.items():
        small = text.lower()
        for secret in secrets:
            told += [f"{where}: {form!r}" for form in forms(secret, step) if form in small]
            told += [f"{where}: {form!r}" for form in words(secret) if form in text]
    return told


async def everything(scene: Scene, execution: str, name: str) -> dict[str, bytes]:
    """All that was written by now, by where it is."""
    files = [each for each in sorted(scene.folder.rglob("*")) if each.is_file() and each.suffix != ".key"]
    found = {str(each): each.read_bytes() for each in files}
    found["log"] = scene.log.getvalue().encode()
    for read in READS:
        answer = await scene.house.ask("GET", read.format(execution, name=name))
        found[read] = answer.content + str(answer.headers).encode()
    return found


async def settled(scene: Scene, execution: str) -> None:
    """Until it has ended, or waits for a person."""
    ended = asyncio.create_task(scene.house.service.ended(execution))
    async with asyncio.timeout(PATIENCE):
        async for _, event in scene.house.service.follow(execution):
            if type(event).__name__ == "RunWaiting":
                break
        else:
            await ended
    ended.cancel()


@pytest.mark.parametrize("way", LEAKS)
async def test_a_secret_is_nowhere_when_it_is_told(scene: Scene, way: str):
    leak, secret, service = LEAKS[way], secret_of(way), scene.house.service
    name = f"c{list(LEAKS).index(way)}"
    async with AsyncExitStack() as stack:
        url = await served(stack, leak, secret)
        values = filled(leak.values, url, secret) if leak.smtp is None else await mailing(stack, leak, secret)
        await service.credentials.create(name, leak.kind, values, leak.hosts, "local")
        node = {"id": "a", "type": leak.type, "with": filled(leak.given, url, ""), "credentials": name}
        soon = {"retry": {"maxAttempts": 2, "delay": "1ms", "jitter": 0}}
        version = await service.save({"name": name, "nodes": [{**soon, **node, **leak.more}]})
        execution = await service.start(version)
        await settled(scene, execution)
    await service.engine.settled()

    found = await everything(scene, execution, name)

    assert leaked(found, [secret]) == []
    assert found["log"]


async def test_what_failed_is_told_in_spite_of_that(scene: Scene):
    letters = await dlq.listed(scene.house.service.store, "default", limit=200)

    assert len(letters) > 40
    assert any("***" in each.reason for each in letters)


async def test_what_is_left_behind_and_the_traces_have_no_secret_either(scene: Scene):
    await scene.stack.aclose()
    told = {str(each): each.read_bytes() for each in scene.folder.rglob("*") if each.is_file()}
    told |= {"traces": b"".join(each.SerializeToString() for each in scene.traces.spans)}
    told |= {"log": scene.log.getvalue().encode()}

    assert len(scene.traces.spans) > len(LEAKS)
    assert leaked(told, [secret_of(way) for way in LEAKS], SHORTEST) == []


async def test_the_search_finds_what_it_looks_for():
    secret = secret_of("in hex")
    shown = (secret, secret[3:15], secret[::-1], secret.upper(), secret.encode().hex(), b64(secret), b64(f"x{secret}"))

    assert all(leaked({"here": f"so: {each}.".encode()}, [secret]) for each in shown)
