"""Live streams, over real sockets: a snapshot, then every event once and in order, until an end that says why."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ropewalk.access.rights import Role
from ropewalk.service.stream_limits import StreamLimits
from ropewalk.service.streaming import Streams
from tests.api.house import API, House
from tests.api.streams import PATIENCE, Listener, numbers, served

WAITING = {
    "ropewalk": 1,
    "name": "waiting",
    "nodes": [
        {"id": "go", "type": "wait", "with": {"signal": "go"}},
        {"id": "a", "type": "set", "with": {"values": {"secret": 42}}},
        {"id": "b", "type": "noop"},
    ],
    "edges": [{"from": "go", "to": "a"}, {"from": "a", "to": "b"}],
}


@pytest.fixture
async def url(house: House) -> AsyncIterator[str]:
    async with served(house) as url:
        yield url


async def started(house: House, document: dict[str, Any] = WAITING, workspace: str = "default") -> str:
    """An execution that has come to its wait."""
    workflow = await house.save(document, workspace)
    service = house.backend.service(workspace)
    execution = await service.start(await service.engine.versions.version(workflow, 1))
    async for _, event in service.follow(execution):
        if type(event).__name__ == "RunWaiting":
            break
    return execution


async def finished(house: House) -> tuple[str, int]:
    """An execution that is over, and how many events it has."""
    execution = await started(house)
    await house.service.signal(execution, "go")
    await house.service.ended(execution)
    return execution, len([seq async for seq, _ in house.service.follow(execution)])


def path(execution: str) -> str:
    return f"/workflow/executions/{execution}/stream"


async def test_a_stream_is_a_snapshot_then_every_event_then_the_end(house: House, url: str):
    execution = await started(house)
    listener = await Listener.connect(url, path(execution), house.root)
    (snapshot,) = await listener.take(1)

    await house.service.signal(execution, "go")
    said = await listener.everything()

    seq = snapshot.data["seq"]
    assert snapshot.kind == "snapshot"
    assert snapshot.id == str(seq)
    assert [node["id"] for node in snapshot.data["execution"]["nodes"]] == ["go", "a", "b"]
    assert snapshot.data["execution"]["traceId"] == execution.replace("-", "")
    assert numbers(said) == list(range(seq + 1, seq + len(said)))
    assert [each.id for each in said[:-1]] == [str(number) for number in numbers(said)]
    assert said[-1].kind == "end"
    assert said[-1].data == {"reason": "finished", "id": str(numbers(said)[-1]), "state": "SUCCESS"}


async def test_a_reader_that_comes_back_at_any_place_misses_nothing_and_gets_nothing_twice(house: House, url: str):
    execution, count = await finished(house)

    for place in range(count + 1):
        by_header = await Listener.connect(url, path(execution), house.root, (f"Last-Event-ID: {place}",))
        by_query = await Listener.connect(url, f"{path(execution)}?after={place}", house.root)

        for listener in (by_header, by_query):
            said = await listener.everything()
            assert numbers(said) == list(range(place + 1, count + 1))
            assert said[-1].kind == "end"


async def test_a_stream_cut_in_the_middle_goes_on_where_it_was_cut(house: House, url: str):
    execution = await started(house)
    first = await Listener.connect(url, path(execution), house.root)
    (snapshot,) = await first.take(1)
    first.hang_up()
    await house.service.signal(execution, "go")
    await house.service.ended(execution)

    second = await Listener.connect(url, path(execution), house.root, (f"Last-Event-ID: {snapshot.id}",))
    seen = numbers(await second.take(2))
    second.hang_up()
    third = await Listener.connect(url, path(execution), house.root, (f"Last-Event-ID: {seen[-1]}",))
    rest = await third.everything()

    assert [*seen, *numbers(rest)] == list(range(snapshot.data["seq"] + 1, numbers(rest)[-1] + 1))


async def test_a_number_the_execution_does_not_have_begins_with_a_snapshot(house: House, url: str):
    """Of a database that went back in time, a reader may have seen more than there is."""
    execution, seq = await finished(house)

    listener = await Listener.connect(url, path(execution), house.root, ("Last-Event-ID: 9999",))
    [snapshot, end] = await listener.everything()

    assert (snapshot.kind, snapshot.id, end.data["reason"]) == ("snapshot", str(seq), "finished")


@pytest.mark.parametrize("after", ["x", "-1", "1e3"])
async def test_what_is_no_number_is_refused(house: House, url: str, after: str):
    execution, _ = await finished(house)

    listener = await Listener.connect(url, path(execution), house.root, (f"Last-Event-ID: {after}",))

    assert listener.status == 422


async def test_a_viewer_sees_that_it_happened_and_not_with_what(house: House, url: str):
    execution, _ = await finished(house)
    viewer, operator = await house.key(Role.VIEWER), await house.key(Role.OPERATOR)

    seen = {
        token: json.dumps(await (await Listener.connect(url, f"{path(execution)}?after=0", token)).everything())
        for token in (viewer, operator)
    }

    assert "secret" in seen[operator]
    assert "secret" not in seen[viewer]
    assert '"payloads": false' in seen[viewer]


async def test_a_snapshot_has_nothing_that_only_some_may_see(house: House, url: str):
    broken = {"id": "a", "type": "set", "with": {"values": {"x": "{{ input + 1 }}"}}, "retry": {"maxAttempts": 1}}
    workflow = await house.save({"ropewalk": 1, "name": "broken", "nodes": [broken]})
    execution = await house.service.start(await house.service.engine.versions.version(workflow, 1), "secret")
    await house.service.ended(execution)

    snapshot, *_ = await (await Listener.connect(url, path(execution), await house.key(Role.VIEWER))).everything()

    assert snapshot.data["execution"]["state"] == "FAILED"
    assert set(snapshot.data["execution"]["nodes"][0]["error"]) == {"type", "message"}
    assert "secret" not in json.dumps(snapshot)


async def test_what_is_not_theirs_does_not_exist_for_strangers(house: House, url: str):
    execution = await started(house)
    await house.workspace("elsewhere")
    stranger = await house.key(Role.ADMIN, "elsewhere")

    answers = [await Listener.connect(url, path(each), stranger) for each in (execution, "no-such-execution")]
    unknown = await Listener.connect(url, path(execution), "rw_x_y")

    assert [answer.status for answer in answers] == [404, 404]
    assert unknown.status == 401


async def test_a_revoked_key_is_cut_off_within_five_seconds(house: House, url: str):
    execution = await started(house)
    token = await house.key(Role.VIEWER)
    listener = await Listener.connect(url, path(execution), token)
    await listener.take(1)

    await house.ask("DELETE", f"/keys/{token.split('_')[1]}")
    async with asyncio.timeout(6):
        said = await listener.everything()

    assert [each.data["reason"] for each in said] == ["revoked"]


async def test_a_server_that_goes_tells_everyone_to_come_back(house: House):
    execution = await started(house)
    async with served(house) as url:
        listener = await Listener.connect(url, path(execution), house.root)
        await listener.take(1)
        reading = asyncio.ensure_future(listener.everything())

    said = await reading

    assert [(each.kind, each.data["reason"]) for each in said] == [("end", "reconnect")]


async def test_no_actor_has_more_streams_than_allowed(house: House, url: str):
    execution = await started(house)
    house.app.state.streams = Streams(house.service.engine, StreamLimits(per_actor=2))
    listeners = [await Listener.connect(url, path(execution), house.root) for _ in range(3)]
    other = await Listener.connect(url, path(execution), await house.key(Role.VIEWER))

    assert [each.status for each in listeners] == [200, 200, 429]
    assert other.status == 200

    listeners[0].hang_up()
    async with asyncio.timeout(PATIENCE):
        while (await Listener.connect(url, path(execution), house.root)).status == 429:
            continue


async def test_signs_of_life_come_when_nothing_else_does(house: House, url: str):
    execution = await started(house)
    house.app.state.streams = Streams(house.service.engine, StreamLimits(beat=0.5))
    listener = await Listener.connect(url, path(execution), house.root)

    await listener.take(1)

    async with asyncio.timeout(PATIENCE):
        assert await listener.raw() == b":\n\n"


async def test_the_last_reader_leaves_nothing_behind(house: House, url: str):
    execution = await started(house)
    listener = await Listener.connect(url, path(execution), house.root)
    await listener.take(1)
    streams: Streams = house.app.state.streams

    assert (len(streams), streams.channels) == (1, 1)

    listener.hang_up()
    async with asyncio.timeout(PATIENCE):
        await streams.emptied()

    assert streams.channels == 0


# WebSockets


def socket(url: str, path: str, token: str) -> Any:
    address = f"{url.replace('http', 'ws')}{path}"
    return connect(address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None)


async def heard(connection: Any) -> list[dict[str, Any]]:
    found = []
    async with asyncio.timeout(PATIENCE):
        try:
            while True:
                found.append(json.loads(await connection.recv()))
        except ConnectionClosed:
            return found


async def test_a_web_socket_says_the_same(house: House, url: str):
    execution = await started(house)
    async with socket(url, f"{API}/workflow/executions/{execution}/subscribe", house.root) as connection:
        snapshot = json.loads(await connection.recv())
        await house.service.signal(execution, "go")
        said = await heard(connection)
        code = connection.close_code

    seq = snapshot["snapshot"]["seq"]
    assert snapshot["kind"] == "snapshot"
    assert [each["event"]["seq"] for each in said[:-1]] == list(range(seq + 1, seq + len(said)))
    assert said[-1]["end"]["state"] == "SUCCESS"
    assert code == 1000


async def test_a_web_socket_goes_on_at_any_place(house: House, url: str):
    execution, count = await finished(house)

    for place in range(count + 1):
        address = f"{API}/workflow/executions/{execution}/subscribe?after={place}"
        async with socket(url, address, house.root) as connection:
            said = await heard(connection)
        assert [each["event"]["seq"] for each in said[:-1]] == list(range(place + 1, count + 1))


@pytest.mark.parametrize(("token", "status"), [("rw_x_y", 401), ("stranger", 404)])
async def test_a_web_socket_passes_the_same_gate_and_is_told_why_not(
    house: House, url: str, token: str, status: int, caplog: pytest.LogCaptureFixture
):
    execution = await started(house)
    await house.workspace("elsewhere")
    token = await house.key(Role.ADMIN, "elsewhere") if token == "stranger" else token

    with pytest.raises(InvalidStatus) as refusal:
        async with socket(url, f"{API}/workflow/executions/{execution}/subscribe", token):
            pass

    told = refusal.value.response
    assert (told.status_code, told.headers["content-type"]) == (status, "application/problem+json")
    assert json.loads(told.body or b"")["status"] == status
    assert caplog.records == []


@pytest.mark.parametrize(("query", "field"), [("after=soon", "query.after"), ("after=-1", "query.after")])
async def test_a_web_socket_is_told_which_parameter_is_wrong(house: House, url: str, query: str, field: str):
    execution = await started(house)

    with pytest.raises(InvalidStatus) as refusal:
        async with socket(url, f"{API}/workflow/executions/{execution}/subscribe?{query}", house.root):
            pass

    told = refusal.value.response
    assert told.status_code == 422
    assert [each["field"] for each in json.loads(told.body or b"")["problems"]] == [field]


# Workflows and workspaces


def rooms(workflow: str) -> dict[str, str]:
    return {"workflow": f"/workflow/definitions/{workflow}/stream", "workspace": "/workspaces/default/stream"}


@pytest.mark.parametrize("kind", ["workflow", "workspace"])
async def test_a_room_tells_of_what_is_under_way_and_of_what_comes(house: House, url: str, kind: str):
    before = await started(house)
    workflow = await house.save(WAITING)
    listener = await Listener.connect(url, rooms(workflow)[kind], house.root)
    (snapshot,) = await listener.take(1)

    after = await started(house)
    for execution in (before, after):
        await house.service.signal(execution, "go")
        await house.service.ended(execution)
    lengths = {each: len([1 async for _ in house.service.follow(each)]) for each in (before, after)}
    (known,) = snapshot.data["executions"]
    said = await listener.take(sum(lengths.values()) - known["seq"])

    assert known["executionId"] == before
    assert _of(said, before) == list(range(known["seq"] + 1, lengths[before] + 1))
    assert _of(said, after) == list(range(1, lengths[after] + 1))
    assert len({each.id for each in said}) == len(said)


def _of(said: Any, execution: str) -> list[int]:
    return [each.data["seq"] for each in said if each.data["executionId"] == execution]


async def test_a_workspace_stream_goes_on_where_it_was_cut_while_it_has_another_reader(house: House, url: str):
    workflow = await house.save(WAITING)
    listeners = [await Listener.connect(url, rooms(workflow)["workflow"], house.root) for _ in range(2)]
    for listener in listeners:
        await listener.take(1)
    execution = await started(house)
    first = await listeners[0].take(2)
    listeners[0].hang_up()
    await house.service.signal(execution, "go")

    back = await Listener.connect(url, rooms(workflow)["workflow"], house.root, (f"Last-Event-ID: {first[-1].id}",))
    rest = await back.take(3)

    assert _of([*first, *rest], execution) == [1, 2, 3, 4, 5]


async def test_a_room_one_comes_back_to_too_late_begins_with_a_snapshot(house: House, url: str):
    workflow = await house.save(WAITING)
    listener = await Listener.connect(url, rooms(workflow)["workflow"], house.root, ("Last-Event-ID: 0123456789ab-17",))

    (said,) = await listener.take(1)

    assert said.kind == "snapshot"


async def test_starts_that_no_worker_has_claimed_yet_are_told_of_too(house: House, url: str):
    workflow = await house.save(WAITING)
    listener = await Listener.connect(url, rooms(workflow)["workspace"], house.root)
    await listener.take(1)
    version = await house.service.engine.versions.version(workflow, 1)

    execution = await house.service.start(version, key="once")
    said = await listener.take(1)

    assert _of(said, execution) == [1]


async def test_a_room_tells_of_its_own_workflow_alone(house: House, url: str):
    other = await house.save({**WAITING, "name": "other"})
    listener = await Listener.connect(url, rooms(other)["workflow"], house.root)
    await listener.take(1)

    await finished(house)
    mine = await started(house, {**WAITING, "name": "other"})
    said = await listener.take(2)

    assert _of(said, mine) == [1, 2]


async def test_the_old_address_of_a_workflow_s_stream_is_the_same_stream(house: House, url: str):
    workflow = await house.save(WAITING)
    async with socket(url, f"/v1/vaiworkflow/subscribe/{workflow}", house.root) as connection:
        snapshot = json.loads(await connection.recv())
        execution = await started(house)
        event = json.loads(await connection.recv())

    assert snapshot["kind"] == "snapshot"
    assert event["event"]["executionId"] == execution
