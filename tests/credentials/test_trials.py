"""Trials of credentials against real servers on this machine: taken, refused, and told of without a secret."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import encode_basic_auth, web
from aiosmtpd.smtp import SMTP, AuthResult

from ropewalk.nodes.credential_trials import TRIALS
from ropewalk.nodes.credential_types import TYPES
from ropewalk.service import Service
from ropewalk.wiring import Settings, open_service
from tests.nodes.conftest import Site, serve

SECRET = "s3cret-canary-0815"
WRONG = "wr0ng-canary-4711"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(Settings(db=str(tmp_path / "shop.db"), allow_hosts=("127.0.0.1",))) as opened:
        yield opened


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async for opened in serve():
        yield opened


def strict(site: Site, path: str, is_good) -> None:
    """Answers a good request with 200, and others with 401 and all that was sent."""

    async def answer(request: web.Request) -> web.Response:
        if await is_good(request):
            return web.json_response({"ok": True, "access_token": "t0ken-canary", "expires_in": 3600})
        return web.Response(status=401, text=f"{request.path_qs} {dict(request.headers)} {await request.text()}")

    site.answers[path] = answer


def has(header: str, value: str):
    async def is_good(request: web.Request) -> bool:
        return request.headers.get(header) == value

    return is_good


async def has_secret_in_query(request: web.Request) -> bool:
    return request.query.get("api_key") == SECRET


async def asks_with_secret(request: web.Request) -> bool:
    login = request.headers.get("Authorization", "")
    return login == encode_basic_auth("shop", SECRET) and (await request.post())["grant_type"] == "client_credentials"


async def always(request: web.Request) -> bool:
    return SECRET in request.path


CASES = {
    "http.basic": ("/me", has("Authorization", encode_basic_auth("shop", SECRET)),
                   {"username": "shop", "password": "@", "testUrl": "$/me"}),
    "http.bearer": ("/me", has("Authorization", f"Bearer {SECRET}"), {"token": "@", "testUrl": "$/me"}),
    "http.header": ("/me", has("X-Key", SECRET), {"name": "X-Key", "value": "@", "testUrl": "$/me"}),
    "http.query": ("/me", has_secret_in_query, {"name": "api_key", "value": "@", "testUrl": "$/me?a=1"}),
    "oauth2.client": ("/token", asks_with_secret, {"clientId": "shop", "clientSecret": "@", "tokenUrl": "$/token"}),
    "openai": ("/v1/models", has("Authorization", f"Bearer {SECRET}"), {"apiKey": "@", "baseUrl": "$/v1"}),
    "anthropic": ("/v1/models", has("x-api-key", SECRET), {"apiKey": "@", "baseUrl": "$"}),
    "slack": ("/auth.test", has("Authorization", f"Bearer {SECRET}"), {"token": "@", "baseUrl": "$"}),
    "github": ("/user", has("Authorization", f"Bearer {SECRET}"), {"token": "@", "baseUrl": "$"}),
    "stripe": ("/v1/balance", has("Authorization", f"Bearer {SECRET}"), {"apiKey": "@", "baseUrl": "$"}),
    "telegram": (f"/bot{SECRET}/getMe", always, {"token": "@", "baseUrl": "$"}),
    "discord": ("/users/@me", has("Authorization", f"Bot {SECRET}"), {"token": "@", "baseUrl": "$"}),
    "notion": ("/v1/users/me", has("Authorization", f"Bearer {SECRET}"), {"token": "@", "baseUrl": "$"}),
    "airtable": ("/v0/meta/whoami", has("Authorization", f"Bearer {SECRET}"), {"token": "@", "baseUrl": "$"}),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
async def test_a_good_credential_is_taken_and_another_is_not(service: Service, site: Site, kind: str):
    path, is_good, fields = CASES[kind]
    strict(site, path, is_good)
    if kind == "telegram":
        strict(site, f"/bot{WRONG}/getMe", always)

    def values(secret: str) -> dict:
        return {name: text.replace("$", site.url).replace("@", secret) for name, text in fields.items()}

    await service.credentials.create("good", kind, values(SECRET), ["127.0.0.1"], "local")
    await service.credentials.create("bad", kind, values(WRONG), ["127.0.0.1"], "local")

    good, bad = await service.credentials.test("good", "local"), await service.credentials.test("bad", "local")

    assert good["ok"] is True, good
    assert bad["ok"] is False, bad
    assert SECRET not in str(good)
    assert WRONG not in str(bad)


async def test_a_credential_is_tried_at_no_host_that_it_is_not_bound_to(service: Service, site: Site):
    values = {"token": SECRET, "testUrl": f"{site.url}/me"}
    await service.credentials.create("shop", "http.bearer", values, ["api.example.org"], "local")

    came = await service.credentials.test("shop", "local")

    assert came["ok"] is False
    assert "is for api.example.org, and not for 127.0.0.1" in came["message"]
    assert site.asked == []


async def test_a_counterpart_that_cannot_be_reached_is_told(service: Service):
    values = {"token": SECRET, "baseUrl": "http://127.0.0.1:1"}
    await service.credentials.create("shop", "github", values, [], "local")

    came = await service.credentials.test("shop", "local")

    assert came["ok"] is False
    assert "127.0.0.1" in came["message"]


async def test_a_mail_server_is_logged_in_to(service: Service):
    def let_in(server, session, envelope, mechanism, data):
        return AuthResult(success=data.password == SECRET.encode())

    def session() -> SMTP:
        return SMTP(object(), hostname="test", authenticator=let_in, auth_require_tls=False)

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0)
    about = {"host": "127.0.0.1", "port": server.sockets[0].getsockname()[1], "tls": "none", "username": "shop"}
    await service.credentials.create("good", "smtp", about | {"password": SECRET}, [], "local")
    await service.credentials.create("bad", "smtp", about | {"password": WRONG}, [], "local")

    good, bad = await service.credentials.test("good", "local"), await service.credentials.test("bad", "local")
    server.close()

    assert (good["ok"], bad["ok"]) == (True, False)
    assert WRONG not in str(bad)


async def test_only_types_that_exist_can_be_tried():
    assert set(TRIALS) <= set(TYPES)
