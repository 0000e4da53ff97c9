"""What the client does when the server does not answer as it should: again, or not, and never for ever."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ropewalk.client import AsyncClient, Client
from ropewalk.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    InvalidInput,
    InvalidTransition,
    NotFound,
    RopewalkError,
    Unauthenticated,
    Unavailable,
)
from tests.client.servers import FINISHED, Script, event, reply, scripted, stream

TOKEN = "rw_test_key"
WORKFLOW = "019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11"
STARTED = reply(202, {"queueId": "e1", "executionId": "e1", "status": "PENDING"})
TOLD = reply(202, {"executionId": "e1", "changed": True})
BUSY = reply(503, {"status": 503, "detail": "the store is away"}, "Retry-After: 0")


@asynccontextmanager
async def talking_to(*answers: bytes | None, patience: float = 10) -> AsyncIterator[tuple[Script, AsyncClient]]:
    async with scripted(answers) as script, AsyncClient(script.url, TOKEN, patience=patience) as client:
        yield script, client


@pytest.mark.parametrize("failure", [None, BUSY, reply(429, {}), reply(502, "a proxy's page")])
async def test_a_start_is_repeated_under_the_same_key(failure: bytes | None):
    async with talking_to(failure, failure, STARTED) as (script, client):
        execution = await client.start(WORKFLOW, {"orderId": "7"})

    assert execution.id == "e1"
    assert len({headers["idempotency-key"] for _, headers, _ in script.heard}) == 1
    assert len(script.heard) == 3


async def test_every_start_has_a_key_of_its_own_unless_one_is_given():
    async with talking_to(STARTED, STARTED, STARTED) as (script, client):
        for key in (None, None, "order-7"):
            await client.start(WORKFLOW, key=key)

    sent = [headers["idempotency-key"] for _, headers, _ in script.heard]
    assert len(set(sent)) == 3
    assert sent[2] == "order-7"


@pytest.mark.parametrize("failure", [None, BUSY, reply(502, "a proxy's page")])
@pytest.mark.parametrize(
    "say",
    [
        lambda client: client.execution("e1").signal("paid"),
        lambda client: client.execution("e1").rerun("a"),
        lambda client: client.execution("e1").replay(),
        lambda client: client.publish_event("order.paid"),
        lambda client: client.note("l1", "asked the bank"),
    ],
)
async def test_what_may_have_been_done_is_not_done_twice(say: Callable[[AsyncClient], Any], failure: bytes | None):
    async with talking_to(failure, TOLD) as (script, client):
        with pytest.raises(Unavailable):
            await say(client)

    assert len(script.heard) == 1


@pytest.mark.parametrize("failure", [BUSY, reply(429, {})])
async def test_what_was_turned_away_is_said_again(failure: bytes):
    async with talking_to(failure, TOLD) as (script, client):
        told = await client.execution("e1").approve("ask")

    assert told["changed"]
    assert len(script.heard) == 2


async def test_the_server_says_when_to_come_back():
    async with talking_to(reply(503, {}, "Retry-After: 1"), TOLD) as (_, client):
        began = time.monotonic()
        await client.execution("e1").cancel()

    assert time.monotonic() - began >= 1


async def test_who_should_wait_longer_than_patience_lasts_is_told_at_once():
    async with talking_to(reply(429, {"detail": "slowly"}, "Retry-After: 60")) as (script, client):
        with pytest.raises(Unavailable, match="slowly"):
            await client.execution("e1").details()

    assert len(script.heard) == 1


async def test_patience_ends():
    async with talking_to(*[BUSY] * 100, patience=0.5) as (_, client):
        began = time.monotonic()
        with pytest.raises(Unavailable, match="the store is away"):
            await client.execution("e1").details()

    assert time.monotonic() - began < 5


async def test_a_server_that_is_not_there_is_unavailable():
    async with AsyncClient("http://127.0.0.1:1", TOKEN, patience=0.2) as client:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await client.execution("e1").signal("paid")


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "about:blank", Unauthenticated),
        (403, "about:blank", Forbidden),
        (404, "urn:ropewalk:problem:not-found", NotFound),
        (409, "urn:ropewalk:problem:invalid-transition", InvalidTransition),
        (409, "urn:ropewalk:problem:conflict", Conflict),
        (412, "about:blank", Conflict),
        (413, "about:blank", Invalid),
        (422, "urn:ropewalk:problem:invalid-input", InvalidInput),
        (500, "about:blank", RopewalkError),
    ],
)
async def test_a_refusal_is_raised_as_the_error_it_was(status: int, kind: str, expected: type[RopewalkError]):
    async with talking_to(reply(status, {"type": kind, "detail": "no"})) as (script, client):
        with pytest.raises(RopewalkError, match="no") as refused:
            await client.execution("e1").details()

    assert type(refused.value) is expected
    assert len(script.heard) == 1


async def test_every_problem_is_told_with_its_place():
    problems = [{"field": "nodes[2].with.url", "message": "is missing"}, {"field": "(document)", "message": "is odd"}]
    async with talking_to(reply(422, {"detail": "2 things to mend", "problems": problems})) as (_, client):
        with pytest.raises(Invalid) as refused:
            await client.execution("e1").details()

    assert [problem.path for problem in refused.value.problems] == [("nodes", 2, "with", "url"), ()]
    assert str(refused.value) == "nodes[2].with.url: is missing\n(document): is odd"


async def test_an_answer_that_is_none_of_ours_says_so():
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
    async with talking_to(page) as (_, client):
        with pytest.raises(RopewalkError, match="is this the address of a Ropewalk server"):
            await client.execution("e1").details()


# Streams


@pytest.mark.parametrize(
    "answers",
    [
        (stream(event(1), event(2)), stream(event(3), FINISHED)),
        (stream(event(1), 'id: 2\ndata: {"se'), stream(event(2), event(3), FINISHED)),
        (stream("retry: 1000\n\n", ":\n\n", event(1)), None, BUSY, stream(event(2), event(3), FINISHED)),
        (stream(event(1), event(2)), stream(event(1), event(2), event(3), FINISHED)),
        (stream(event(1), 'event: end\ndata: {"reason":"reconnect","id":"1"}\n\n'),
         stream(event(2), event(3), FINISHED)),
    ],
)  # fmt: skip
async def test_a_stream_that_is_cut_goes_on_and_every_event_comes_once(answers: tuple[bytes | None, ...]):
    async with talking_to(*answers) as (script, client):
        seen = [each["seq"] async for each in client.execution("e1").events()]

    assert seen == [1, 2, 3]
    asked = [headers.get("last-event-id") for _, headers, _ in script.heard]
    assert asked[0] == "0"
    assert asked[-1] in ("1", "2")


async def test_a_stream_that_ends_again_and_again_is_given_up():
    async with talking_to(*[stream(is_whole=True)] * 100, patience=0.5) as (_, client):
        with pytest.raises(Unavailable, match="the stream ends again and again"):
            [each async for each in client.execution("e1").events()]


async def test_a_listener_that_stops_hangs_up():
    async with talking_to(stream(event(1), event(2))) as (_, client):
        events = client.execution("e1").events()
        first = await anext(aiter(events))
        await events.aclose()  # type: ignore[attr-defined]  # a generator

    assert first["seq"] == 1


# The other client


async def in_a_thread(script: Script, talk: Callable[[Client], Any]) -> Any:
    def work() -> Any:
        with Client(script.url, TOKEN, patience=5) as client:
            return talk(client)

    return await asyncio.to_thread(work)


async def test_the_blocking_client_says_the_same():
    answers = (None, BUSY, STARTED, stream(event(1)), stream(event(2), FINISHED))
    async with scripted(answers) as script:
        seen = await in_a_thread(script, lambda client: [each["seq"] for each in client.start(WORKFLOW).events()])

    assert seen == [1, 2]
    assert len({headers["idempotency-key"] for _, headers, _ in script.heard[:3]}) == 1


async def test_the_blocking_client_raises_the_same():
    async with scripted([None]) as script:
        with pytest.raises(Unavailable, match="see what was done"):
            await in_a_thread(script, lambda client: client.execution("e1").signal("paid"))


# The address


@pytest.mark.parametrize(
    "url", ["ropewalk.example", "ftp://ropewalk.example", "https://me:secret@ropewalk.example", "http://", "http://[::"]
)
def test_an_address_that_cannot_be_used_is_refused_and_not_repeated(url: str):
    with pytest.raises(InvalidInput) as refused:
        Client(url, TOKEN)

    assert "secret" not in str(refused.value)


def test_a_token_goes_in_the_clear_only_where_that_is_meant():
    with pytest.raises(InvalidInput, match="in the clear"):
        Client("http://ropewalk.example", TOKEN)

    Client("http://ropewalk.example", TOKEN, allow_http=True).close()
    Client("http://[::1]:8470", TOKEN).close()


@pytest.mark.parametrize("token", ["", "two words", "n\u00fcll", "line\nbreak"])
def test_a_token_that_is_none_is_refused(token: str):
    with pytest.raises(InvalidInput):
        Client("https://ropewalk.example", token)
