"""Rate limits: per address, per actor, and for proofs that prove nothing."""

from pathlib import Path
from typing import Any

import pytest

from ropewalk.access.rates import SESSIONS, Limits, Rate
from ropewalk.access.rights import Role
from ropewalk.access.settings import AccessSettings
from ropewalk.core.duration import SECOND
from tests.access.issuers import AUDIENCE, ISSUER, issuing, signed
from tests.api.asking import SOCKET, ask
from tests.api.house import House, opened

SLOW = Rate(0.001, 3)
ME = "/api/v1/me"
FAR = "192.0.2.1"


def limited(**limits: Rate | None) -> AccessSettings:
    nothing: dict[str, Rate | None] = {"per_actor": None, "per_address": None, "failures": None}
    return AccessSettings(limits=Limits(**{**nothing, **limits}))


async def statuses(house: House, token: str | None, times: int = 5, client: str = FAR, path: str = ME) -> list[int]:
    headers = [] if token is None else [("Authorization", f"Bearer {token}")]
    return [(await ask(house.app, "GET", path, headers, client=client)).status for _ in range(times)]


async def test_an_address_that_asks_too_often_is_told_when_to_come_back(tmp_path: Path):
    async with opened(str(tmp_path / "db"), limited(per_address=SLOW)) as house:
        seen = await statuses(house, house.root)
        refused = await ask(house.app, "GET", "/healthz", [], client=FAR)
        socket = await ask(house.app, SOCKET, "/api/v1/workspaces/default/subscribe", [], client=FAR)
        others = await statuses(house, house.root, client="192.0.2.2", times=1)
        local = await statuses(house, house.root, client="127.0.0.1", times=10)

    assert (seen, others, set(local)) == ([200, 200, 200, 429, 429], [200], {200})
    assert (refused.status, refused.json["status"], int(refused.headers["retry-after"]) > 0) == (429, 429, True)
    assert socket.status == 429


async def test_an_actor_that_asks_too_often_is_held_back_at_every_address(tmp_path: Path):
    async with opened(str(tmp_path / "db"), limited(per_actor=SLOW)) as house:
        busy, other = await house.key(Role.VIEWER), await house.key(Role.VIEWER)
        seen = [(await statuses(house, busy, 1, f"192.0.2.{n}"))[0] for n in range(5)]
        others = await statuses(house, other, 1)
        root = await statuses(house, house.root, 10)

    assert (seen, others, set(root)) == ([200, 200, 200, 429, 429], [200], {200})


async def test_an_address_that_guesses_has_to_wait_and_no_valid_key_there_with_it(tmp_path: Path):
    async with opened(str(tmp_path / "db"), limited(failures=SLOW)) as house:
        known, unknown = await house.key(Role.VIEWER), await house.key(Role.VIEWER)
        await statuses(house, known, 1)
        guesses = [(await statuses(house, f"rw_{n:032x}_{'x' * 43}", 1))[0] for n in range(5)]
        house.backend.forget()

        assert guesses == [401, 401, 401, 429, 429]
        assert await statuses(house, known, 2) == [200, 200], "a key that was valid there is no guess"
        assert await statuses(house, unknown, 1) == [429], "a guess that is right is not told from others"
        assert await statuses(house, unknown, 1, "192.0.2.2") == [200]
        assert await statuses(house, None, 2) == [429, 429], "who says nothing is not told from who guesses"


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP"])
async def test_no_client_counts_as_another_by_saying_so(tmp_path: Path, name: str):
    async with opened(str(tmp_path / "db"), limited(per_address=SLOW, failures=SLOW)) as house:
        said = [[(name, f"192.0.2.{n}"), ("Authorization", f"Bearer rw_{n:032x}_{'x' * 43}")] for n in range(100, 105)]
        seen = [(await ask(house.app, "GET", ME, headers, client=FAR)).status for headers in said]

    assert seen == [401, 401, 401, 429, 429]


async def test_what_an_issuer_signed_is_no_guess_however_others_guess_there(tmp_path: Path):
    async with issuing() as issuer:
        access = AccessSettings(issuers=(issuer.issuer(),), limits=limited(failures=SLOW).limits)
        async with opened(str(tmp_path / "db"), access) as house:
            now = house.backend.store.now() // SECOND
            claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600}
            guesses = [(await statuses(house, signed(claims, "another", n=n), 1))[0] for n in range(4)]
            good = await statuses(house, signed(claims), 1)

    assert (guesses, good) == ([401, 401, 401, 429], [200])


@pytest.mark.parametrize("headers", [[("Cookie", "__Host-ropewalk=guess")], [("Authorization", "Bearer a.b.c")]])
async def test_cookies_and_tokens_are_guessed_no_faster(tmp_path: Path, headers: list[tuple[str, str]]):
    async with opened(str(tmp_path / "db"), limited(failures=SLOW)) as house:
        seen = [(await ask(house.app, "GET", ME, headers)).status for _ in range(4)]

    assert seen == [401, 401, 401, 429]


async def test_logins_that_fail_count_too(tmp_path: Path):
    async with opened(str(tmp_path / "db"), limited(failures=SLOW)) as house:
        seen = [(await ask(house.app, "POST", "/api/v1/session", [], {"token": "guess"})).status for _ in range(4)]

    assert seen == [401, 401, 401, 429]


async def test_no_caller_fills_the_store_with_sessions(tmp_path: Path):
    async with opened(str(tmp_path / "db")) as house:
        ann, bob = await house.key(Role.VIEWER), await house.key(Role.VIEWER)
        seen = [await ask(house.app, "POST", "/api/v1/session", [], {"token": ann}) for _ in range(SESSIONS.burst + 1)]
        other = await ask(house.app, "POST", "/api/v1/session", [], {"token": bob})

    assert [each.status for each in seen] == [201] * SESSIONS.burst + [429]
    assert int(seen[-1].headers["retry-after"]) > 0
    assert other.status == 201


async def test_no_token_a_wrong_a_revoked_and_an_expired_one_are_answered_alike(tmp_path: Path):
    """Word for word, headers included, also when the address has to wait."""
    async with opened(str(tmp_path / "db"), limited(failures=Rate(0.001, 5))) as house:
        revoked, expired = await house.key(Role.VIEWER), await house.key(Role.VIEWER, expires_at=1)
        await statuses(house, revoked, 1)
        await house.ask("DELETE", f"/keys/{revoked.split('_')[1]}")
        shown: dict[str, list[tuple[str, str]]] = {
            "none": [],
            "another kind": [("Authorization", "Basic eDp5")],
            "malformed": [("Authorization", "Bearer x")],
            "wrong": [("Authorization", f"Bearer rw_{7:032x}_{'x' * 43}")],
            "revoked": [("Authorization", f"Bearer {revoked}")],
            "expired": [("Authorization", f"Bearer {expired}")],
            "session": [("Cookie", "__Host-ropewalk=nothing")],
        }
        at_first = {name: await _told(house, headers) for name, headers in shown.items()}
        await statuses(house, "x", 5)
        at_last = {name: await _told(house, headers) for name, headers in shown.items()}

    assert [status for status, _, _ in (at_first["none"], at_last["none"])] == [401, 429]
    for answers in (at_first, at_last):
        assert {name: each for name, each in answers.items() if each != answers["none"]} == {}


async def _told(house: House, headers: list[tuple[str, str]]) -> tuple[int, dict[str, str], dict[str, Any]]:
    answer = await ask(house.app, "GET", ME, headers, client=FAR)
    return answer.status, dict(answer.headers), {**answer.json, "instance": None}
