"""The gate: who is let in, by what, and what those learn who are not."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from fastapi.routing import APIRouter

from ropewalk.access.rates import Limits
from ropewalk.access.rights import Right, Role
from ropewalk.access.settings import AccessSettings
from ropewalk.api.doors import middleware
from ropewalk.api.routes import Routes
from ropewalk.store import acl, members
from ropewalk.store.errors import StoreUnavailable
from tests.api.asking import SOCKET, Reply, ask
from tests.api.house import House, opened

HERE = "/api/v1/workflow/executions"
STREAM = "/api/v1/workspaces/default/subscribe"
TOKEN = "<token>"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One for all the tests here: they leave nothing that another would trip over."""
    limits = AccessSettings(limits=Limits(failures=None))
    async with opened(str(tmp_path_factory.mktemp("house") / "ropewalk.db"), limits) as house:
        yield house


async def asked(house: House, method: str, path: str, *headers: tuple[str, str], body: Any = None) -> Reply:
    given = [(name, value.replace(TOKEN, house.root)) for name, value in headers]
    return await ask(house.app, method, path, given, body)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer ")],
        [("Authorization", f"Basic {TOKEN}")],
        [("Authorization", TOKEN)],
        [("Authorization", f"Bearer {TOKEN}x")],
        [("Authorization", f"Bearer {TOKEN} {TOKEN}")],
        [("Authorization", f"Bearer {TOKEN},{TOKEN}")],
        [("X-Authorization", f"Bearer {TOKEN}")],
        [("Cookie", f"ropewalk={TOKEN}")],
        [("Cookie", f"__Host-ropewalk={TOKEN}")],
        [("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-User", "root")],
        [("Authorization", "Bearer \xff\xfe")],
        [("Authorization", "Bearer ..")],
    ],
    ids=str,
)
async def test_a_caller_without_a_proof_is_refused(house: House, headers: list[tuple[str, str]]):
    reply = await asked(house, "GET", HERE, *headers)

    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert reply.headers["content-type"] == "application/problem+json"


async def test_the_scheme_may_be_written_as_one_likes(house: House):
    reply = await asked(house, "GET", HERE, ("authorization", f"bEARER {TOKEN}"))

    assert reply.status == 200


async def test_two_proofs_are_refused_even_if_they_are_the_same(house: House):
    proof = ("Authorization", f"Bearer {TOKEN}")

    reply = await asked(house, "GET", HERE, proof, proof)

    assert reply.status == 400
    assert reply.json["problems"][0]["field"] == "header.authorization"


@pytest.mark.parametrize("name", ["token", "access_token", "key", "authorization"])
async def test_a_token_in_the_query_is_no_proof(house: House, name: str):
    reply = await asked(house, "GET", f"{HERE}?{name}={house.root}")

    assert reply.status == 401
    assert house.root.encode() not in reply.body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/", 404),
        ("GET", f"{HERE}/", 404),
        ("POST", f"{HERE}/start/", 404),
        ("GET", "/api/v1//workflow/executions", 404),
        ("GET", "/API/V1/workflow/executions", 404),
        ("PATCH", HERE, 405),
        ("HEAD", HERE, 405),
        ("OPTIONS", HERE, 405),
        ("TRACE", HERE, 405),
        ("BREW", HERE, 405),
        (SOCKET, "/api/v1/nothing", 404),
        (SOCKET, HERE, 404),
        ("GET", STREAM, 404),
        ("HEAD", "/api/v1/nothing", 404),
        ("OPTIONS", "/api/v1/nothing", 404),
    ],
)
async def test_where_there_is_nothing_strangers_learn_nothing(house: House, method: str, path: str, status: int):
    stranger = await asked(house, method, path)
    known = await asked(house, method, path, ("Authorization", f"Bearer {TOKEN}"))

    assert (stranger.status, known.status) == (401, status)
    assert stranger.headers["content-type"] == known.headers["content-type"] == "application/problem+json"
    assert "location" not in known.headers


async def test_strangers_see_no_methods(house: House):
    stranger = await asked(house, "PATCH", HERE)
    known = await asked(house, "PATCH", HERE, ("Authorization", f"Bearer {TOKEN}"))

    assert "allow" not in stranger.headers
    assert "GET" in known.headers["allow"]


async def test_a_body_is_not_read_before_its_sender_is_let_in(house: House):
    reply = await asked(house, "POST", f"{HERE}/start", body=b"{" * 2_000_000)

    assert reply.status == 401


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("http://ropewalk.test", 101),
        ("https://ropewalk.test", 101),
        ("http://evil.test", 403),
        ("http://ropewalk.test.evil.test", 403),
        ("http://ropewalk.test:8080", 403),
        ("https://ropewalk.test:80", 403),
        ("null", 403),
        ("", 403),
        ("http://[::1", 403),
        ("file://ropewalk.test", 403),
    ],
)
async def test_a_page_of_another_origin_opens_no_websocket_even_with_a_token(
    house: House, origin: str | None, status: int
):
    headers = [("Authorization", f"Bearer {TOKEN}")]
    if origin is not None:
        headers.append(("Origin", origin))

    reply = await asked(house, SOCKET, STREAM, *headers)

    assert reply.status == status


async def test_a_websocket_without_a_proof_gets_a_problem_for_a_handshake(house: House):
    reply = await asked(house, SOCKET, STREAM)

    assert (reply.status, reply.json["title"]) == (401, "Not authenticated")


async def test_people_have_to_say_which_workspace(house: House):
    token = await house.key(Role.VIEWER)

    twice = await asked(house, "GET", f"{HERE}?workspaceId=a&workspaceId=b", ("Authorization", f"Bearer {token}"))

    assert (twice.status, twice.json["problems"][0]["field"]) == (422, "query.workspaceId")


@pytest.mark.parametrize("name", ["absent", "", "%00", "x" * 300, "default%20", "DEFAULT"])
async def test_a_workspace_that_does_not_exist_is_not_found(house: House, name: str):
    reply = await asked(house, "GET", f"{HERE}?workspaceId={name}", ("Authorization", f"Bearer {TOKEN}"))

    assert reply.status == 404


async def test_foreign_and_absent_workspaces_look_the_same(house: House):
    await house.workspace("theirs")
    token = await house.key(Role.ADMIN)

    replies = [
        await asked(house, "GET", f"{HERE}?workspaceId={name}", ("Authorization", f"Bearer {token}"))
        for name in ("theirs", "absent")
    ]

    said = [reply.json["detail"].replace("theirs", "absent") for reply in replies]
    assert (replies[0].status, replies[1].status) == (404, 404)
    assert said[0] == said[1]


async def test_a_member_who_was_added_is_in_at_once(house: House):
    await house.workspace("theirs")
    token, store = await house.key(Role.VIEWER), house.backend.store
    subject = f"key:{token.split('_')[1]}"
    proof, path = ("Authorization", f"Bearer {token}"), f"{HERE}?workspaceId=theirs"
    before = await asked(house, "GET", path, proof)

    async with store.transaction() as tx:
        await members.put(tx, members.Member("theirs", subject, Role.VIEWER, store.now(), "test"))

    assert (before.status, (await asked(house, "GET", path, proof)).status) == (404, 200)


async def test_scopes_narrow_what_is_shared_too(house: House):
    await house.workspace("theirs")
    workflow = await house.save({"ropewalk": 1, "name": "one", "nodes": []})
    token, store = await house.key(Role.RUNNER, "theirs", scopes=(Right.RUN,)), house.backend.store
    async with store.transaction() as tx:
        subject = f"key:{token.split('_')[1]}"
        await acl.put(tx, acl.Share("default", workflow, subject, Role.ADMIN, store.now(), "test"))

    path = f"/api/v1/workflow/definitions/{workflow}?workspaceId=default"
    reply = await asked(house, "GET", path, ("Authorization", f"Bearer {token}"))

    assert reply.status == 404


async def test_a_known_caller_costs_no_read(house: House, monkeypatch: pytest.MonkeyPatch):
    token, read = await house.key(Role.VIEWER), []
    proof = ("Authorization", f"Bearer {token}")
    await asked(house, "GET", "/api/v1/workflow/node-types", proof)
    await asked(house, "GET", "/api/v1/workflow/node-types", ("Authorization", f"Bearer {TOKEN}"))
    real = house.backend.store.fetch

    async def counted(name: str, *arguments: Any) -> Any:
        read.append(name)
        return await real(name, *arguments)

    monkeypatch.setattr(house.backend.store, "fetch", counted)
    monkeypatch.setattr(house.backend.store, "fetch_one", counted)
    await asked(house, "GET", "/api/v1/workflow/node-types", proof)
    await asked(house, "GET", "/api/v1/workflow/node-types", ("Authorization", f"Bearer {TOKEN}"))

    assert read == []


@pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/nothing"])
async def test_while_the_store_is_away_no_caller_is_sent_away_for_good(
    house: House, monkeypatch: pytest.MonkeyPatch, path: str
):
    token = await house.key(Role.VIEWER)

    async def away(name: str, *arguments: Any) -> Any:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(house.backend.store, "fetch_one", away)
    reply = await asked(house, "GET", path, ("Authorization", f"Bearer {token}"))

    assert (reply.status, reply.headers["retry-after"]) == (503, "1")


async def test_answers_are_what_they_say_and_no_cache_keeps_them(house: House):
    reply = await asked(house, "GET", "/api/v1/me", ("Authorization", f"Bearer {TOKEN}"))

    assert (reply.headers["x-content-type-options"], reply.headers["cache-control"]) == ("nosniff", "no-store")


async def naked() -> dict[str, str]:
    return {}


def _raw(app: FastAPI) -> None:
    app.add_route("/raw", naked)  # type: ignore[arg-type]


def _plain(app: FastAPI) -> None:
    app.add_api_route("/plain", naked)


def _nested(app: FastAPI) -> None:
    router = APIRouter()
    router.add_api_route("/nested", naked)
    app.include_router(router, prefix="/deep")


def _socket(app: FastAPI) -> None:
    app.add_api_websocket_route("/socket", naked)


def _mounted(app: FastAPI) -> None:
    app.mount("/mounted", FastAPI())


@pytest.mark.parametrize("add", [_raw, _plain, _nested, _socket, _mounted])
async def test_an_app_with_a_route_that_has_no_gate_does_not_come_to_be(add):
    app = FastAPI(openapi_url=None)
    add(app)

    with pytest.raises(ValueError, match="name no right"):
        middleware.install(app)


async def test_a_public_route_has_to_be_named_by_the_gate():
    routes = Routes("", "Test")
    routes.public("GET", "/open")(naked)

    with pytest.raises(ValueError, match="not among the public"):
        routes.install(FastAPI(openapi_url=None))


async def test_no_log_has_a_token_in_it(house: House, caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    wrong = house.root[:-4] + "wxyz"
    for token in (house.root, wrong):
        await asked(house, "GET", HERE, ("Authorization", f"Bearer {token}"))
        await asked(house, "POST", "/api/v1/session", body={"token": token})
    made = await asked(
        house, "POST", "/api/v1/keys", ("Authorization", f"Bearer {TOKEN}"), body={"name": "x", "role": "viewer"}
    )

    assert made.status == 201
    assert not [each for each in (house.root, wrong, made.json["token"]) if each.split("_", 2)[2] in caplog.text]
