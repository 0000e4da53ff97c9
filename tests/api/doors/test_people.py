"""People who come with a token of an issuer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from ropewalk.access import jwks
from ropewalk.access.rights import Role
from ropewalk.access.settings import AccessSettings
from ropewalk.core.duration import SECOND
from ropewalk.store import audit, members
from tests.access.issuers import AUDIENCE, ISSUER, JwksServer, issuing, signed
from tests.api.asking import SOCKET, ask
from tests.api.house import House, opened
from tests.api.streams import PATIENCE, Listener, served

HASTY: dict[str, Any] = {"refresh_every": 1, "leeway": 0}
HERE = "/workflow/executions?workspaceId=default"


class Place(Struct, frozen=True):
    """A house that believes an issuer."""

    house: House
    issuer: JwksServer

    def token(self, **more: Any) -> str:
        now = self.house.backend.store.now() // SECOND
        return signed({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, **more})


async def away(request: Any) -> Any:
    raise ConnectionResetError


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with (
        issuing() as issuer,
        opened(str(tmp_path / "ropewalk.db"), AccessSettings(issuers=(issuer.issuer(**HASTY),))) as house,
    ):
        store = house.backend.store
        async with store.transaction() as tx:
            await members.put(tx, members.Member("default", "user:ann", Role.OPERATOR, store.now(), "test"))
        yield Place(house, issuer)


async def test_a_member_comes_in_by_a_token_and_others_find_nothing(place: Place):
    ann, bob = place.token(), place.token(sub="bob")

    answers = [await place.house.ask("GET", HERE, token) for token in (ann, bob)]

    assert [each.status_code for each in answers] == [200, 404]


async def test_people_have_no_workspace_to_fall_back_on(place: Place):
    answer = await place.house.ask("GET", "/workflow/executions", place.token())

    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (422, "query.workspaceId")


@pytest.mark.parametrize(("method", "way"), [("GET", "stream"), (SOCKET, "subscribe")])
async def test_the_stream_of_a_workspace_names_it_in_its_path(place: Place, method: str, way: str):
    headers = [("Authorization", f"Bearer {place.token()}")]

    reply = await ask(place.house.app, method, f"/api/v1/workspaces/default/{way}", headers)

    assert reply.status in (101, 200)


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8"], ids=["short way", "route"])
@pytest.mark.parametrize(
    ("sub", "workspace", "status"), [("ann", "default", 202), ("ann", None, 422), ("bob", "default", 404)]
)
@pytest.mark.parametrize("is_batch", [False, True], ids=["one", "batch"])
async def test_a_start_may_name_its_workspace_in_the_body(
    place: Place, kind: str, sub: str, workspace: str | None, status: int, is_batch: bool
):
    start = {"workflowDefinitionId": await place.house.save({"ropewalk": 1, "name": "one", "nodes": []})}
    body = {**({"starts": [start]} if is_batch else start), **({"workspaceId": workspace} if workspace else {})}
    headers = [("Authorization", f"Bearer {place.token(sub=sub)}"), ("Content-Type", kind)]

    reply = await ask(
        place.house.app, "POST", f"/api/v1/workflow/executions/start{'-batch' if is_batch else ''}", headers, body
    )

    assert reply.status == status


async def test_what_people_do_is_audited_under_their_name(place: Place):
    workflow = await place.house.save({"ropewalk": 1, "name": "one", "nodes": []})
    body = {"workflowDefinitionId": workflow}

    started = await place.house.ask("POST", "/workflow/executions/start?workspaceId=default", place.token(), json=body)

    told = await audit.listed(place.house.backend.store, "default")
    assert started.status_code == 202
    assert told[0].actor == "user:ann"


async def test_an_issuer_that_is_away_is_no_reason_to_send_people_away(place: Place):
    place.issuer.answer = away

    by_token = await place.house.ask("GET", HERE, place.token())
    by_key = await place.house.ask("GET", HERE)

    assert (by_token.status_code, by_token.headers["retry-after"]) == (503, "1")
    assert by_key.status_code == 200


async def let_go(place: Place) -> None:
    await place.house.ask("DELETE", "/members?subject=user:ann")


async def wait(place: Place) -> None:
    """Nothing happens but that time passes."""


@pytest.mark.parametrize(("lasts", "happens"), [(600, let_go), (4, wait)], ids=["let go", "expired"])
async def test_a_stream_ends_with_the_rights_or_the_token_also_while_the_issuer_is_away(
    place: Place, lasts: int, happens: Callable[[Place], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jwks, "FRESH", SECOND // 10)
    monkeypatch.setattr(jwks, "GOOD", SECOND // 10)
    workflow = await place.house.save({"ropewalk": 1, "name": "one", "nodes": []})
    token = place.token(exp=place.house.backend.store.now() // SECOND + lasts)
    async with served(place.house) as url:
        listener = await Listener.connect(url, f"/workflow/definitions/{workflow}/stream?workspaceId=default", token)
        await listener.take(1)
        place.issuer.answer = away
        async with asyncio.timeout(PATIENCE):
            while (await place.house.ask("GET", HERE, token)).status_code == 200:
                continue

        await happens(place)

        assert [each.data["reason"] for each in await listener.everything()] == ["revoked"]


async def test_a_session_of_a_person_ends_with_their_token(place: Place):
    ends = place.house.backend.store.now() // SECOND + 100
    opening = await ask(place.house.app, "POST", "/api/v1/session", [], {"token": place.token(exp=ends)})
    cookie = opening.headers["set-cookie"].partition(";")[0]

    me = await ask(place.house.app, "GET", "/api/v1/me", [("Cookie", cookie)])

    visit = await place.house.backend.sessions.find(cookie.partition("=")[2])
    assert (me.status, me.json["subject"]) == (200, "user:ann")
    assert [each["role"] for each in me.json["workspaces"]] == ["operator"]
    assert visit is not None
    assert visit.expires_at == ends * SECOND
