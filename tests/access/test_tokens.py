"""Tokens of an issuer, against a real JWKS endpoint with real keys: what is let in, and all that is not."""

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ropewalk.access.jwks import FRESH, GOOD, LARGEST
from ropewalk.access.settings import ALGORITHMS, Issuer
from ropewalk.access.tokens import Tokens
from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.core.errors import InvalidInput, Unavailable
from tests.access.clocks import Clock
from tests.access.issuers import AUDIENCE, ISSUER, RSA, JwksServer, described, issuing, signed

NOON = 1_794_830_400 * SECOND


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON)


@pytest.fixture
async def issuer() -> AsyncIterator[JwksServer]:
    async with issuing() as server:
        yield server


def claims(clock: Clock, **more: Any) -> dict[str, Any]:
    now = clock.now() // SECOND
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, **more}
    return {name: value for name, value in said.items() if value is not None}


def tokens_of(clock: Clock, issuer: JwksServer, **more: Any) -> Tokens:
    return Tokens(clock.now, [issuer.issuer(**more)])


@pytest.mark.parametrize("kid", ["rsa", "ec", "ed"])
async def test_a_token_of_the_issuer_tells_who_a_caller_is(clock: Clock, issuer: JwksServer, kid: str):
    said = claims(clock)

    actor = await tokens_of(clock, issuer).actor(signed(said, kid))

    assert actor is not None
    assert (actor.subject, actor.home, actor.role, actor.is_root) == ("user:ann", None, None, False)
    assert actor.expires_at == said["exp"] * SECOND


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"iss": "https://issuer.test"},
        {"iss": ["https://issuer.test/"]},
        {"sub": ""},
        {"sub": "a\nb"},
        {"sub": "a\0b"},
        {"sub": "x" * 300},
        {"sub": 7},
        {"exp": "soon"},
        {"exp": True},
        {"exp": 10**30},
        {"exp": float("inf")},
        {"iat": -1},
        {"nbf": "now"},
        *({name: None} for name in ("iss", "aud", "sub", "iat", "exp")),
    ],
    ids=str,
)
async def test_a_token_that_says_something_else_proves_nothing(
    clock: Clock, issuer: JwksServer, changes: dict[str, Any]
):
    assert await tokens_of(clock, issuer).actor(signed(claims(clock, **changes))) is None


@pytest.mark.parametrize(
    ("changes", "is_good"),
    [
        ({"exp": -31}, False),
        ({"exp": -29}, True),
        ({"iat": 31}, False),
        ({"iat": 29}, True),
        ({"nbf": 31}, False),
        ({"nbf": 29}, True),
    ],
    ids=str,
)
async def test_clocks_may_differ_by_the_leeway_and_no_more(
    clock: Clock, issuer: JwksServer, changes: dict[str, int], is_good: bool
):
    now = clock.now() / SECOND
    said = claims(clock, **{name: now + seconds for name, seconds in changes.items()})

    assert (await tokens_of(clock, issuer).actor(signed(said)) is not None) is is_good


async def test_a_token_that_was_believed_ends_when_it_says(clock: Clock, issuer: JwksServer):
    tokens, token = tokens_of(clock, issuer, leeway=0), signed(claims(clock))
    assert await tokens.actor(token)

    clock.ahead = 600 * SECOND

    assert await tokens.actor(token) is None


def b64(value: bytes | dict[str, Any]) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unsigned(said: dict[str, Any], algorithm: str) -> str:
    return f"{b64({'alg': algorithm, 'kid': 'rsa'})}.{b64(said)}."


def by_public_key(said: dict[str, Any]) -> str:
    """The old trick: the public key, known to all, as the secret of an HMAC."""
    head = f"{b64({'alg': 'HS256', 'kid': 'rsa'})}.{b64(said)}"
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return f"{head}.{b64(hmac.digest(pem, head.encode(), hashlib.sha256))}"


def tampered(said: dict[str, Any]) -> str:
    head, _, signature = signed(said).split(".")
    return f"{head}.{b64(said | {'sub': 'root'})}.{signature}"


@pytest.mark.parametrize(
    "forge",
    [
        lambda said: unsigned(said, "none"),
        lambda said: unsigned(said, "None"),
        lambda said: unsigned(said, "RS256"),
        by_public_key,
        tampered,
        lambda said: signed(said, "another"),
        lambda said: signed(said, "another", kid="ed"),
        lambda said: signed(said, "another", kid="ed", jwk=described("another")),
        lambda said: signed(said, "another", jku="http://127.0.0.1/keys", x5u="http://127.0.0.1/keys"),
        lambda said: signed(said, "another", kid="../../../dev/null"),
        lambda said: signed(said, "another", kid="' or '1'='1"),
        lambda said: signed(said, "ed", kid="rsa"),
        lambda said: signed(said, "ed", kid=""),
        lambda said: signed(said, "weak"),
        lambda said: signed(said, "p384"),
        lambda said: signed(said, crit=["exp"]),
        lambda said: jwt.encode(said, RSA, "RS512", headers={"kid": "rsa"}),
        lambda said: jwt.encode(said, RSA, "PS256", headers={"kid": "rsa"}),
        lambda said: jwt.encode(said, RSA, "RS256"),
        lambda said: signed(said) + ".more",
        lambda said: signed(said).replace(".", ".."),
        lambda said: f"{b64(b'[' * 5_000)}.{b64(said)}.AA",
        lambda said: f"{b64({'alg': 'EdDSA', 'kid': 'ed'})}.{b64(b'[' * 5_000)}.AA",
        lambda said: f"{b64({'alg': ['EdDSA'], 'kid': ['ed']})}.{b64(said)}.AA",
        lambda said: signed(said | {"more": "x" * 10_000}),
        lambda said: "é.é.é",
        lambda said: "",
        lambda said: "..",
    ],
)
async def test_a_forgery_proves_nothing(clock: Clock, issuer: JwksServer, forge):
    assert await tokens_of(clock, issuer).actor(forge(claims(clock))) is None


async def test_an_unknown_key_is_asked_for_once_and_then_refused(clock: Clock, issuer: JwksServer):
    tokens = tokens_of(clock, issuer)

    answers = [await tokens.actor(signed(claims(clock, jti=str(n)), "another")) for n in range(20)]

    assert (answers, issuer.asked) == ([None] * 20, 1)


async def test_a_rotated_key_is_found_and_the_old_one_is_out(clock: Clock, issuer: JwksServer):
    tokens = tokens_of(clock, issuer)
    assert await tokens.actor(signed(claims(clock)))
    issuer.keys = [described("another")]

    clock.ahead = 31 * SECOND

    assert await tokens.actor(signed(claims(clock), "another"))
    assert await tokens.actor(signed(claims(clock))) is None
    assert issuer.asked == 2


async def test_a_thousand_good_tokens_cost_one_question(clock: Clock, issuer: JwksServer):
    tokens = tokens_of(clock, issuer)

    actors = await asyncio.gather(*(tokens.actor(signed(claims(clock, sub=f"u{n}"))) for n in range(100)))

    assert (all(actors), issuer.asked) == (True, 1)


async def endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for _ in range(LARGEST // 1024 + 100):
        await answer.write(b" " * 1024)
    return answer


async def silent(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


def saying(status: int = 200, **more: Any):
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, **more)

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        saying(500),
        saying(302, headers={"Location": "/elsewhere"}),
        saying(text="not JSON"),
        saying(body=b"[" * 100_000),
        saying(text='{"keys": {}}'),
        saying(text="[]"),
        endless,
        silent,
    ],
    ids=["500", "redirect", "text", "deep", "no list", "list", "endless", "silent"],
)
async def test_keys_that_cannot_be_had_are_no_callers_fault(clock: Clock, issuer: JwksServer, answer: Any):
    issuer.answer = answer

    with pytest.raises(Unavailable):
        await tokens_of(clock, issuer, timeout=0.3).actor(signed(claims(clock)))

    assert issuer.asked == 1


async def test_an_issuer_that_is_not_there_is_asked_again_a_little_later(clock: Clock, issuer: JwksServer):
    tokens, issuer.answer = tokens_of(clock, issuer), saying(500)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await tokens.actor(signed(claims(clock)))
    asked, issuer.answer = issuer.asked, None

    clock.ahead = 31 * SECOND

    assert asked == 1
    assert await tokens.actor(signed(claims(clock)))


async def test_known_keys_serve_on_for_an_hour_while_the_issuer_is_away(clock: Clock, issuer: JwksServer):
    tokens = tokens_of(clock, issuer)
    assert await tokens.actor(signed(claims(clock)))
    issuer.answer = saying(500)

    clock.ahead = GOOD - MINUTE
    assert await tokens.actor(signed(claims(clock)))
    clock.ahead = GOOD + HOUR
    with pytest.raises(Unavailable):
        await tokens.actor(signed(claims(clock)))


@pytest.mark.parametrize("changes", [{"exp": -31}, {"nbf": 31}, {"iat": None}], ids=str)
async def test_a_token_that_is_out_of_time_proves_nothing_wherever_the_issuer_is(
    clock: Clock, issuer: JwksServer, changes: dict[str, int | None]
):
    now, issuer.answer = clock.now() // SECOND, saying(500)
    said = claims(clock, **{name: value and now + value for name, value in changes.items()})

    assert await tokens_of(clock, issuer).actor(signed(said)) is None
    assert issuer.asked == 0


async def test_a_known_caller_does_not_wait_for_an_issuer_that_is_silent(clock: Clock, issuer: JwksServer):
    tokens = tokens_of(clock, issuer, timeout=30.0)
    assert await tokens.actor(signed(claims(clock)))
    asked, clock.ahead = asyncio.Event(), FRESH

    async def silent_now(request: web.Request) -> web.StreamResponse:
        asked.set()
        return await silent(request)

    issuer.answer = silent_now
    waiting = asyncio.ensure_future(tokens.actor(signed(claims(clock, sub="bob"))))
    await asked.wait()

    async with asyncio.timeout(5):
        assert await tokens.actor(signed(claims(clock, sub="cem")))
    waiting.cancel()


@pytest.mark.parametrize(
    "hostile",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "ed"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "ed"},
        {"kty": "OKP", "crv": ["Ed25519"], "kid": "ed"},
        {"kty": ["RSA"], "kid": "ed"},
        {"kty": "RSA", "n": 7, "e": None, "kid": "ed"},
        {"kty": "RSA", "kid": ["ed"]},
        described("ed", use="enc"),
        described("ed", alg="HS256"),
        "ed",
        None,
    ],
    ids=[
        "oct",
        "short",
        "listed curve",
        "listed type",
        "numbers",
        "listed id",
        "for encryption",
        "by secret",
        "text",
        "null",
    ],
)
async def test_a_key_that_is_none_of_ours_is_passed_over(clock: Clock, issuer: JwksServer, hostile: Any):
    issuer.keys = [hostile, described("rsa")]
    tokens = tokens_of(clock, issuer)

    assert await tokens.actor(signed(claims(clock))) is None
    assert await tokens.actor(signed(claims(clock), "rsa"))


async def test_people_of_several_issuers_are_told_apart(clock: Clock, issuer: JwksServer):
    second = "https://second.test/"
    tokens = Tokens(clock.now, [issuer.issuer(), issuer.issuer(issuer=second)])

    actors = [await tokens.actor(signed(claims(clock, iss=each))) for each in (ISSUER, second, "https://third.test/")]

    assert [each and each.subject for each in actors] == [f"user:{ISSUER}|ann", f"user:{second}|ann", None]


async def test_an_issuer_whose_name_has_no_answer_holds_no_thread_that_the_process_waits_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    may_answer, asked = threading.Event(), []

    def silent(*arguments: Any, **more: Any) -> Any:
        asked.append(threading.current_thread())
        may_answer.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    named = Issuer(issuer=ISSUER, audience=AUDIENCE, jwks_url="https://issuer.silent/keys", timeout=0.1)

    with pytest.raises(Unavailable):
        await Tokens(clock.now, [named]).actor(signed(claims(clock)))

    may_answer.set()
    assert [(each.name, each.daemon) for each in asked] == [("ropewalk-lookup", True)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("jwks_url", "http://issuer.test/keys"),
        ("jwks_url", "https://user@issuer.test/keys"),
        ("jwks_url", "file:///etc/passwd"),
        ("jwks_url", "https://[::1/keys"),
        ("algorithms", ("HS256",)),
        ("algorithms", ("none",)),
        ("algorithms", ()),
        ("audience", ""),
        ("issuer", ""),
        ("leeway", 3_600),
        ("refresh_every", 0),
        ("timeout", 0),
    ],
)
def test_settings_that_would_let_in_more_than_is_meant_are_refused(field: str, value: Any):
    good = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": "https://issuer.test/keys", "algorithms": ALGORITHMS}

    with pytest.raises(InvalidInput, match=field):
        Issuer(**{**good, field: value})
