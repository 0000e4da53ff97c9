"""One message carries every signal of a person; a caller and an owner of different versions say so."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from ropewalk.control import wire
from ropewalk.control.client import RemoteService
from ropewalk.core import signals
from ropewalk.core.errors import Conflict, InvalidInput
from ropewalk.core.signals import PersonSignal
from ropewalk.service import Service, reading
from ropewalk.service.telling import SignalVerbs
from ropewalk.store.sqlite import SqliteReader
from tests.client.samples import ASKED, BROKEN
from tests.control.test_control import enveloped, letter, raw, started

HERE = version("ropewalk")
NAMES = {each.__name__ for each in get_args(PersonSignal)}


async def waiting(remote: RemoteService) -> str:
    """An execution that waits for an approval."""
    execution = await started(remote, ASKED)
    async for _, event in remote.follow(execution):
        if type(event).__name__ == "RunWaiting":
            break
    return execution


async def failed(remote: RemoteService) -> str:
    """An execution that has failed and left a dead letter."""
    execution = await started(remote, BROKEN)
    await remote.ended(execution)
    return execution


async def paused(remote: RemoteService) -> str:
    execution = await waiting(remote)
    await remote.pause(execution)
    return execution


Make = Callable[[RemoteService], Awaitable[str]]
Ask = Callable[[RemoteService, str, str], Awaitable[Any]]
WALK: dict[str, tuple[Make, Ask, str]] = {
    "Cancel": (waiting, lambda verbs, execution, _: verbs.cancel(execution, "ann", "enough"), "CancelRequested"),
    "Pause": (waiting, lambda verbs, execution, _: verbs.pause(execution, "ann"), "ExecutionPaused"),
    "Resume": (paused, lambda verbs, execution, _: verbs.resume(execution, "ann"), "ExecutionResumed"),
    "Retry": (failed, lambda verbs, execution, _: verbs.retry(execution, "ann"), "ExecutionReopened"),
    "Tell": (waiting, lambda verbs, execution, _: verbs.signal(execution, "hi", [1], "ann"), "SignalReceived"),
    "Decide": (waiting, lambda verbs, execution, _: verbs.decide(execution, "ask", approved=True), "NodeSucceeded"),
    "GiveUp": (waiting, lambda verbs, execution, _: verbs.give_up(execution, "ask", by="ann"), "NodeFailed"),
    "Requeue": (failed, lambda verbs, _, dead: verbs.requeue(dead, {"message": "no"}, "ann"), "NodeRequeued"),
    "Fix": (failed, lambda verbs, _, dead: verbs.fix(dead, {"mended": True}, "ann"), "NodeFixed"),
    "Discard": (failed, lambda verbs, _, dead: verbs.discard(dead, "ann", "known"), ""),
}


def test_every_signal_of_a_person_is_walked_through_the_socket():
    assert set(WALK) == NAMES


@pytest.mark.parametrize("name", WALK)
async def test_a_signal_crosses_the_socket_as_one_message_and_is_recorded(name: str, remote: RemoteService, path: str):
    make, ask, event = WALK[name]
    execution = await make(remote)
    dead = await letter(path) if make is failed else ""

    answer = await ask(remote, execution, dead)

    reader = await SqliteReader.open(path)
    recorded = [type(each).__name__ for each in (await reading.recorded(reader, execution)).events]
    resolved = await reading.list_dead_letters(reader, "default", reading.Resolution.DISCARDED)
    await reader.close()
    assert answer in (True, execution, None)
    assert event in recorded if event else [each["id"] for each in resolved] == [dead]


def test_no_message_is_made_for_one_verb_alone():
    messages = {each.__name__ for each in get_args(wire.Request)}

    assert messages & NAMES == {"Tell"}


def test_the_service_and_the_client_of_the_socket_have_the_same_verbs():
    verbs = {name for name in vars(SignalVerbs) if not name.startswith("_")}

    assert all(issubclass(each, SignalVerbs) for each in (Service, RemoteService))
    assert verbs & set(vars(Service)) == verbs & set(vars(RemoteService)) == {"tell"}


@pytest.mark.parametrize("signal", [signals.Cancel("ann", "enough"), signals.Fix("a", "ann", {"b": [1]}, ("ok",), 3)])
def test_a_signal_is_read_back_as_it_was_written(signal: PersonSignal):
    assert signals.decode(signals.encode(signal)) == signal


# Versions


async def test_a_caller_without_an_envelope_is_told_both_versions(service: Service):
    old = b'{"verb": "cancel", "execution": "x", "by": "ann"}\n'

    (answer,) = await raw(service.store.path, old)

    assert answer["kind"] == "refusal"
    assert answer["types"][0] == "Conflict"
    assert "Ropewalk of an earlier release (control protocol 1)" in answer["message"]
    assert f"Ropewalk {HERE} (control protocol {wire.PROTOCOL})" in answer["message"]


async def test_a_caller_of_a_later_protocol_is_told_both_versions(service: Service):
    (answer,) = await raw(service.store.path, enveloped(b'{"new": "shape"}', 3, "7.0.0"))

    assert answer["types"][0] == "Conflict"
    assert "Ropewalk 7.0.0 (control protocol 3)" in answer["message"]
    assert f"Ropewalk {HERE} (control protocol {wire.PROTOCOL})" in answer["message"]


@pytest.mark.parametrize("signal", [b'{"type": "Teleport"}', b'{"type": "Retry", "by": "ann", "only": ["a"]}'])
async def test_a_signal_of_a_later_release_is_refused_with_both_versions(signal: bytes, service: Service):
    request = b'{"verb": "tell", "execution": "x", "signal": %b}' % signal

    (answer,) = await raw(service.store.path, enveloped(request, release="7.0.0"))

    assert answer["types"][0] == "InvalidInput"
    assert all(each in answer["message"] for each in ("Ropewalk 7.0.0", f"Ropewalk {HERE}"))


async def test_an_owner_of_an_earlier_release_makes_an_error_with_both_versions_and_no_wait(tmp_path: Path):
    refusal = {"kind": "refusal", "types": ["InvalidInput"], "message": "the request cannot be understood: no verb"}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(msgspec.json.encode(refusal) + b"\n")
        writer.close()

    async with await asyncio.start_unix_server(answer, tmp_path / "s"), asyncio.timeout(5):
        with pytest.raises(Conflict) as raised:
            await RemoteService(str(tmp_path / "s")).cancel("x")

    assert f"Ropewalk {HERE} (control protocol {wire.PROTOCOL})" in str(raised.value)
    assert "Ropewalk of an earlier release (control protocol 1)" in str(raised.value)


async def test_a_name_that_is_too_long_is_refused_by_the_owner(remote: RemoteService):
    execution = await waiting(remote)

    with pytest.raises(InvalidInput) as raised:
        await remote.signal(execution, "x" * 1000)

    assert [problem.where for problem in raised.value.problems] == ["name"]
