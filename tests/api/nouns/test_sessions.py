"""Sessions for browsers, and who one is."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from ropewalk.access.cache import CACHED_FOR
from ropewalk.access.rates import Limits
from ropewalk.access.rights import BEYOND, RIGHTS, Right, Role
from ropewalk.access.sessions import LASTS, Sessions
from ropewalk.access.settings import AccessSettings
from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.store import acl, audit, members
from tests.access.clocks import Clocked
from tests.api.asking import SOCKET, Reply, ask
from tests.api.house import House, opened

ORIGIN = ("Origin", "http://ropewalk.test")
START = "/api/v1/workflow/executions/start"
ME = "/api/v1/me"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One for all the tests here: they leave nothing that another would trip over."""
    limits = AccessSettings(limits=Limits(failures=None))
    async with opened(str(tmp_path_factory.mktemp("house") / "ropewalk.db"), limits) as house:
        yield house


class Browser:
    """One that has opened a session, and asks as browsers do."""

    def __init__(self, house: House, opened: Reply) -> None:
        self.house = house
        self.cookie = opened.headers["set-cookie"].partition(";")[0]
        self.csrf = opened.json["csrfToken"]

    async def ask(self, method: str, path: str, *headers: tuple[str, str], body: Any = None) -> Reply:
        return await ask(self.house.app, method, path, [("Cookie", self.cookie), *headers], body)

    async def meant(self, method: str, path: str, body: Any = None) -> Reply:
        return await self.ask(method, path, ORIGIN, ("X-CSRF-Token", self.csrf), body=body)


async def opening(house: House, token: str, *headers: tuple[str, str]) -> Reply:
    return await ask(house.app, "POST", "/api/v1/session", list(headers), {"token": token})


async def browser(house: House, token: str) -> Browser:
    return Browser(house, await opening(house, token))


async def test_a_token_is_exchanged_for_a_cookie_that_pages_cannot_read(house: House):
    reply = await opening(house, house.root)

    name, *attributes = reply.headers["set-cookie"].split("; ")
    assert reply.status == 201
    assert name.startswith("__Host-ropewalk=")
    assert {each.lower() for each in attributes} == {"httponly", "max-age=43200", "path=/", "samesite=strict", "secure"}
    assert name.split("=")[1] not in reply.body.decode()
    assert house.root not in reply.body.decode()


@pytest.mark.parametrize("host", ["localhost:8470", "127.0.0.1:8470", "[::1]:8470", "localhost"])
async def test_on_this_machine_the_cookie_goes_without_tls(house: House, host: str):
    reply = await ask(_hosted(house, host), "POST", "/api/v1/session", [], {"token": house.root})

    assert reply.headers["set-cookie"].startswith("ropewalk=")
    assert "secure" not in reply.headers["set-cookie"].lower()


def _hosted(house: House, host: str):
    """The app as it is spoken to under another name."""

    async def app(scope, receive, send):
        others = [(name, value) for name, value in scope["headers"] if name != b"host"]
        await house.app({**scope, "headers": [(b"host", host.encode()), *others]}, receive, send)

    return app


async def test_a_session_reads_without_and_writes_with_the_csrf_token(house: House):
    workflow = await house.save({"ropewalk": 1, "name": "one", "nodes": []})
    visitor, body = await browser(house, house.root), {"workflowDefinitionId": workflow}

    assert (await visitor.ask("GET", ME)).status == 200
    assert (await visitor.meant("POST", START, body)).status == 202


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [ORIGIN],
        [ORIGIN, ("X-CSRF-Token", "")],
        [ORIGIN, ("X-CSRF-Token", "0" * 64)],
        [ORIGIN, ("X-CSRF-Token", "\xff")],
        [("X-CSRF-Token", "<csrf>")],
        [("Origin", "http://evil.test"), ("X-CSRF-Token", "<csrf>")],
        [("Origin", "http://ropewalk.test:3000"), ("X-CSRF-Token", "<csrf>")],
        [("Origin", "null"), ("X-CSRF-Token", "<csrf>")],
        [ORIGIN, ("Origin", "http://evil.test"), ("X-CSRF-Token", "<csrf>")],
    ],
    ids=str,
)
async def test_what_a_strangers_page_makes_a_browser_ask_is_refused(house: House, headers: list[tuple[str, str]]):
    visitor = await browser(house, house.root)
    given = [(name, value.replace("<csrf>", visitor.csrf)) for name, value in headers]

    replies = [await visitor.ask(method, "/api/v1/members", *given) for method in ("PUT", "DELETE")]

    assert [reply.status for reply in replies] == [403, 403]


@pytest.mark.parametrize(("headers", "status"), [([ORIGIN], 101), ([], 403), ([("Origin", "http://evil.test")], 403)])
async def test_a_websocket_with_a_cookie_comes_from_our_own_pages(
    house: House, headers: list[tuple[str, str]], status: int
):
    visitor = await browser(house, house.root)

    assert (await visitor.ask(SOCKET, "/api/v1/workspaces/default/subscribe", *headers)).status == status


async def test_no_browser_is_logged_in_by_a_foreign_page(house: House):
    reply = await opening(house, house.root, ("Origin", "http://evil.test"))

    assert reply.status == 403
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("token", ["", "nothing", "rw_x_y", "a.b.c", "x" * 9_000, "é", "a b", 7, None])
async def test_what_is_no_token_opens_no_session(house: House, token: Any):
    reply = await opening(house, token)

    assert reply.status in (401, 422)
    assert "set-cookie" not in reply.headers


async def test_a_closed_session_is_over(house: House):
    visitor = await browser(house, house.root)

    closed = await visitor.meant("DELETE", "/api/v1/session")

    assert (closed.status, closed.json) == (200, {"changed": True})
    assert "max-age=0" in closed.headers["set-cookie"].lower()
    assert (await visitor.ask("GET", ME)).status == 401


async def test_who_has_no_session_closes_none(house: House):
    answer = await house.ask("DELETE", "/session")

    assert (answer.status_code, answer.json()) == (200, {"changed": False})


async def test_revoking_a_key_ends_its_sessions(house: House):
    token = await house.key(Role.VIEWER)
    visitor = await browser(house, token)
    assert (await visitor.ask("GET", ME)).status == 200

    await house.ask("DELETE", f"/keys/{token.split('_')[1]}")

    assert (await visitor.ask("GET", ME)).status == 401


async def test_a_session_ends_within_five_seconds_of_its_key_on_other_servers_too(house: House):
    token, store = await house.key(Role.VIEWER), Clocked(house.backend.store)
    visitor = await browser(house, token)
    elsewhere, cookie = Sessions(store, house.backend.keys), visitor.cookie.partition("=")[2]
    assert await elsewhere.find(cookie)
    await house.ask("DELETE", f"/keys/{token.split('_')[1]}")

    store.ahead = CACHED_FOR

    assert CACHED_FOR < 5 * SECOND
    assert await elsewhere.find(cookie) is None


async def test_a_session_lasts_twelve_hours_and_not_beyond_its_key(house: House):
    store = Clocked(house.backend.store)
    sessions = Sessions(store, house.backend.keys)
    long = await house.backend.actor(await house.key(Role.VIEWER))
    short = await house.backend.actor(await house.key(Role.VIEWER, expires_at=store.now() + HOUR))
    assert long is not None
    assert short is not None
    cookies = [(await sessions.open(actor))[0] for actor in (long, short)]

    found = []
    for store.ahead in (HOUR - MINUTE, HOUR + MINUTE, LASTS - MINUTE, LASTS + MINUTE):
        found.append([await sessions.find(cookie) is not None for cookie in cookies])

    assert found == [[True, True], [True, False], [True, False], [False, False]]


async def test_only_hashes_of_a_session_are_kept(house: House):
    visitor = await browser(house, house.root)
    cookie = visitor.cookie.partition("=")[2]

    kept = await house.backend.sessions.find(cookie)
    rows = str(await audit.listed(house.backend.store, "default"))

    assert kept is not None
    assert cookie not in rows
    assert "open-session" in rows


async def test_a_page_that_is_loaded_anew_is_told_its_csrf_token_again(house: House):
    visitor = await browser(house, house.root)

    by_cookie, by_key = await visitor.ask("GET", ME), await house.ask("GET", "/me")

    assert by_cookie.json["csrfToken"] == visitor.csrf
    assert by_key.json()["csrfToken"] is None


async def test_one_is_told_who_one_is_and_what_one_may_do_where(house: House):
    for name in ("one", "two"):
        await house.workspace(name)
    token, store = await house.key(Role.OPERATOR, scopes=(Right.READ, Right.EXECUTE)), house.backend.store
    subject = f"key:{token.split('_')[1]}"
    async with store.transaction() as tx:
        await members.put(tx, members.Member("one", subject, Role.VIEWER, store.now(), "test"))
        await acl.put(tx, acl.Share("two", "w", subject, Role.EDITOR, store.now(), "test"))

    me = (await house.ask("GET", "/me", token)).json()

    assert (me["subject"], me["root"]) == (subject, False)
    assert me["workspaces"] == [
        {"workspaceId": "default", "role": "operator", "rights": ["execute", "read"]},
        {"workspaceId": "one", "role": "viewer", "rights": ["read"]},
        {"workspaceId": "two", "role": None, "rights": []},
    ]


async def test_root_is_told_so(house: House):
    me = (await house.ask("GET", "/me")).json()

    assert me["root"] is True
    assert RIGHTS[Role.ADMIN] | BEYOND == set(me["workspaces"][0]["rights"])
