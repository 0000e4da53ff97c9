"""The control socket: the verbs of the service, carried out by the process that owns the store."""

import asyncio
import inspect
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from ropewalk.control import wire
from ropewalk.control.client import NoAnswer, RemoteService
from ropewalk.control.place import socket_path
from ropewalk.control.server import ControlServer
from ropewalk.core.errors import Conflict, InvalidDefinition, InvalidInput, InvalidTransition, NotFound, Unavailable
from ropewalk.core.state import ExecutionState
from ropewalk.service import Service, reading
from ropewalk.service.retention import Policy
from ropewalk.store.sqlite import SqliteReader, owner_info
from ropewalk.wiring import Settings, open_service
from tests.client.samples import ASKED, BROKEN
from tests.control.conftest import socket_of

# Verbs


async def started(remote: RemoteService, document: dict[str, Any]) -> str:
    return await remote.start(await remote.save(document))


async def test_an_execution_is_saved_started_decided_and_ended_by_another_process(remote: RemoteService):
    execution = await started(remote, ASKED)
    waiting = asyncio.create_task(remote.ended(execution))
    async for _, event in remote.follow(execution):
        if type(event).__name__ == "RunWaiting":
            break

    assert await remote.decide(execution, "ask", approved=True)
    ended = await waiting

    assert (ended.execution, ended.state, ended.output) == (execution, ExecutionState.SUCCESS, True)


async def test_pause_resume_signal_and_cancel_say_whether_they_changed_anything(remote: RemoteService):
    execution = await started(remote, ASKED)

    said = [
        await remote.pause(execution),
        await remote.pause(execution),
        await remote.resume(execution),
        await remote.resume(execution),
        await remote.signal(execution, "hello", {"a": 1}),
        await remote.cancel(execution),
    ]

    assert said == [True, False, True, False, True, True]
    assert (await remote.ended(execution)).state is ExecutionState.CANCELLED


async def test_a_failure_is_retried_requeued_fixed_rerun_and_replayed(remote: RemoteService, path: str):
    execution = await started(remote, BROKEN)
    await remote.ended(execution)
    await remote.retry(execution)
    await remote.ended(execution)
    same = await remote.requeue(await letter(path), {"message": "still no"})
    await remote.ended(execution)
    fixed = await remote.fix(await letter(path), {"mended": True})
    ended = await remote.ended(execution)

    again = [await remote.rerun(execution, "stop"), await remote.replay(execution)]

    assert (same, fixed, ended.state) == (execution, execution, ExecutionState.SUCCESS)
    assert [(await remote.ended(each)).state for each in again] == [ExecutionState.FAILED] * 2


async def test_a_run_is_given_up_and_its_letter_discarded(remote: RemoteService, path: str):
    execution = await started(remote, ASKED)
    async for _, event in remote.follow(execution):
        if type(event).__name__ == "RunWaiting":
            break
    await remote.give_up(execution, "ask", reason="enough")

    await remote.discard(await letter(path), notes="nobody cares")

    reader = await SqliteReader.open(path)
    (row,) = await reading.list_dead_letters(reader, "default", reading.Resolution.DISCARDED)
    await reader.close()
    assert (row["reason"], row["notes"]) == ("enough", "nobody cares")


async def test_a_letter_is_noted_and_what_is_old_is_removed_by_the_owner(remote: RemoteService, path: str):
    execution = await started(remote, BROKEN)
    await remote.ended(execution)
    await remote.note(await letter(path), "asked the bank", "ann")

    swept = await remote.sweep(Policy())

    reader = await SqliteReader.open(path)
    (row,) = await reading.list_dead_letters(reader, "default", reading.Resolution.PENDING)
    await reader.close()
    assert row["notes"].endswith(" ann: asked the bank")
    assert (swept.total, swept.position.is_end) == (0, True)


async def letter(path: str) -> str:
    """The dead letter that lies unresolved."""
    reader = await SqliteReader.open(path)
    (found,) = await reading.list_dead_letters(reader, "default", reading.Resolution.PENDING)
    await reader.close()
    return str(found["id"])


async def test_followed_events_are_those_of_the_log_in_order(remote: RemoteService, path: str):
    execution = await started(remote, BROKEN)

    followed = [(seq, event) async for seq, event in remote.follow(execution)]
    later = [seq async for seq, _ in remote.follow(execution, after=2)]

    reader = await SqliteReader.open(path)
    recorded = (await reading.recorded(reader, execution)).events
    await reader.close()
    assert [event for _, event in followed] == recorded
    assert [seq for seq, _ in followed] == list(range(1, len(recorded) + 1))
    assert later == list(range(3, len(recorded) + 1))


async def test_many_can_ask_at_once(remote: RemoteService):
    version = await remote.save(BROKEN)

    ids = await asyncio.gather(*(remote.start(version) for _ in range(50)))
    ended = await asyncio.gather(*(remote.ended(each) for each in ids))

    assert {each.state for each in ended} == {ExecutionState.FAILED}
    assert len(set(ids)) == 50


# Refusals


async def test_a_bad_definition_is_refused_with_every_problem(remote: RemoteService):
    with pytest.raises(InvalidDefinition) as refusal:
        await remote.save(
            {"ropewalk": 1, "name": "x", "nodes": [{"id": "a", "type": "nosuch"}], "edges": [{"from": "b"}]}
        )

    assert [problem.where for problem in refusal.value.problems][:1] == ["nodes[0].type"]
    assert len(refusal.value.problems) > 1


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda remote, execution: remote.retry(execution), InvalidTransition),
        (lambda remote, execution: remote.pause("nosuch"), NotFound),
        (lambda remote, execution: remote.requeue("nosuch"), NotFound),
        (lambda remote, execution: remote.rerun(execution, "ask"), InvalidTransition),
        (lambda remote, execution: remote.start(wire.SavedVersion("nosuch", 1, "")), NotFound),
    ],
)
async def test_a_refusal_is_raised_as_the_error_it_was(ask: Any, error: type[Exception], remote: RemoteService):
    execution = await started(remote, ASKED)

    with pytest.raises(error):
        await ask(remote, execution)


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("one"),
        InvalidDefinition([wire.Problem(("nodes", 2), "two")]),
        NotFound("three"),
        Conflict("four"),
        NoAnswer("five"),
    ],
)
def test_an_error_crosses_with_its_class_message_and_problems(error: Any):
    crossed = wire.error_of(wire.answer_in(wire.line_of(wire.refusal_of(error))))  # type: ignore[arg-type]  # a refusal

    assert (type(crossed), str(crossed)) == (type(error), str(error))
    assert getattr(crossed, "problems", None) == getattr(error, "problems", None)


def test_an_error_unknown_here_is_the_nearest_one_that_is_known():
    crossed = wire.error_of(wire.Refusal(("StoreOnFire", "Unavailable", "RopewalkError"), "it burns"))

    assert (type(crossed), str(crossed)) == (Unavailable, "it burns")


def test_every_request_is_a_verb_of_the_service_with_the_same_arguments():
    verbs = {each.__struct_config__.tag: each for each in get_args(wire.Request)}

    for name, request in verbs.items():
        assert callable(getattr(Service, str(name)))
        assert callable(getattr(RemoteService, str(name)))
        here, there = (inspect.signature(getattr(each, str(name))) for each in (Service, RemoteService))
        assert list(here.parameters) == list(there.parameters), request


async def raw(path: str, *lines: bytes) -> list[dict[str, Any]]:
    """What comes back for these lines."""
    reader, writer = await asyncio.open_unix_connection(socket_of(path), limit=wire.LONGEST_ANSWER)
    writer.write(b"".join(lines))
    answers = [msgspec.json.decode(await reader.readline()) for _ in lines]
    writer.close()
    return answers


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"{}\n",
        b'{"verb": "explode"}\n',
        b'{"verb": "pause"}\n',
        b'{"verb": "pause", "execution": 7}\n',
        b'{"verb": "pause", "execution": "x", "extra": 1}\n',
        b"[" * 100_000 + b"\n",
    ],
)
async def test_what_is_no_request_is_refused_and_the_next_one_is_answered(line: bytes, service: Service):
    first, second = await raw(service.store.path, line, b'{"verb": "pause", "execution": "nosuch"}\n')

    assert first["types"][0] == "InvalidInput"
    assert second["types"][0] == "NotFound"


async def test_a_request_longer_than_allowed_is_not_sent(remote: RemoteService):
    with pytest.raises(Exception, match="at most 8,388,608 can be sent"):
        await remote.save({"name": "x" * wire.LONGEST_REQUEST})


# The socket itself


async def test_only_its_user_can_reach_the_socket(service: Service):
    socket = Path(socket_of(service.store.path))

    assert socket.is_socket()
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert (socket.stat().st_mode & 0o777, socket.stat().st_uid) == (0o600, os.geteuid())
    assert len(os.fsencode(socket)) <= 100


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
async def test_another_user_is_not_listened_to_even_if_the_socket_were_open(service: Service):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        server = ControlServer(service)
        await server.open(f"{folder}/s")
        os.chmod(f"{folder}/s", 0o666)
        stranger = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", STRANGER, f"{folder}/s", stdout=asyncio.subprocess.PIPE
        )
        answer, _ = await stranger.communicate()
        await server.close()

    assert answer == b"connected, b''"


STRANGER = """
import os, socket, sys
speaker = socket.socket(socket.AF_UNIX)
os.setuid(65534)
speaker.connect(sys.argv[1])
try:
    speaker.sendall(b'{"verb": "pause", "execution": "x"}\\n')
    answer = speaker.recv(100)
except ConnectionError:
    answer = b""
print(f"connected, {answer}", end="")
"""


async def test_the_socket_is_gone_with_its_owner(owner: subprocess.Popen[str], path: str):
    socket = Path(socket_of(path))

    owner.communicate("go\n")

    assert (socket.exists(), owner_info(path)) == (False, None)


async def test_a_socket_left_by_a_killed_owner_is_replaced(owner: subprocess.Popen[str], path: str):
    socket = socket_of(path)
    owner.kill()
    owner.wait()
    with pytest.raises(NoAnswer, match="nobody listens"):
        await RemoteService.connect(socket)
    stale = Path(socket).exists()

    async with open_service(Settings(db=path)):
        again = await RemoteService.connect(socket_of(path))
        await again.save(ASKED)

    assert (stale, Path(socket).exists()) == (True, False)


async def test_a_caller_that_waits_is_told_when_the_owner_goes(owner: subprocess.Popen[str], remote: RemoteService):
    execution = await started(remote, ASKED)
    waiting = asyncio.create_task(remote.ended(execution))
    async for _, event in remote.follow(execution):
        if type(event).__name__ == "RunWaiting":
            break
    owner.kill()

    with pytest.raises(Unavailable, match="went away"):
        await waiting


async def test_a_caller_that_hangs_up_leaves_nothing_behind(service: Service, tmp_path: Path):
    server = ControlServer(service)
    await server.open(str(tmp_path / "s"))
    remote = RemoteService(str(tmp_path / "s"))
    execution = await started(remote, ASKED)
    async for _ in remote.follow(execution):
        talks = server.talks
        break

    async with asyncio.timeout(10):
        while server.talks:
            await asyncio.sleep(0)

    assert talks == 1
    await server.close()


def test_a_directory_that_others_can_enter_is_not_used(tmp_path: Path):
    open_to_all = tmp_path / "ropewalk"
    open_to_all.mkdir(mode=0o777)
    open_to_all.chmod(0o777)

    path = socket_path("x.db", {"XDG_RUNTIME_DIR": str(tmp_path)})

    assert not path.startswith(str(tmp_path))


def test_a_directory_with_a_long_name_is_not_used(tmp_path: Path):
    path = socket_path("x.db", {"XDG_RUNTIME_DIR": str(tmp_path / ("long" * 30))})

    assert len(os.fsencode(path)) <= 100


def test_a_link_is_no_private_directory(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "ropewalk").symlink_to(tmp_path / "elsewhere")

    assert not socket_path("x.db", {"XDG_RUNTIME_DIR": str(tmp_path)}).startswith(str(tmp_path))


def test_two_names_of_one_store_have_one_socket(tmp_path: Path):
    (tmp_path / "a.db").touch()
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")

    assert socket_path(str(tmp_path / "a.db")) == socket_path(str(tmp_path / "b.db"))


async def test_what_killed_owners_left_is_swept_away_after_a_while_and_the_living_stay(
    owner: subprocess.Popen[str], path: str, service_elsewhere: Service
):
    left, living = Path(socket_of(path)), Path(socket_of(service_elsewhere.store.path))
    owner.kill()
    owner.wait()

    socket_path("other.db")
    at_once = left.exists()
    socket_path("other.db", now=left.stat().st_mtime + 4000)

    assert (at_once, left.exists(), living.exists()) == (True, False, True)
