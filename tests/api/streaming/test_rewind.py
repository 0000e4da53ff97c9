"""The database goes back in time under a server: its readers get a new snapshot, and its health says so."""

import asyncio

import pytest

from ropewalk.core.errors import Unavailable
from tests.api.house import House
from tests.api.streaming.test_stream_fleet import idle_house
from tests.api.streaming.test_streams import path
from tests.api.streams import PATIENCE, Listener, served
from tests.polling import until
from tests.postgres import a_copy, ask

WAITS = {
    "ropewalk": 1,
    "name": "waits",
    "nodes": [{"id": "a", "type": "wait", "with": {"signal": "go"}}],
}


async def begun(house: House) -> str:
    workflow = await house.save(WAITS)
    return await house.service.start(await house.service.engine.versions.version(workflow, 1))


async def refused(house: House) -> None:
    """The server has to write something, and finds out."""
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Unavailable):
            await begun(house)

    async def is_told() -> bool:
        return (await ready(house))["incidents"] != []

    await until(is_told, "the server says what happened")


async def ready(house: House) -> dict[str, object]:
    async with house.client(None) as client:
        answer = await client.get("/readyz")
    return answer.json() if answer.status_code == 200 else {"incidents": []}


async def test_readers_get_a_new_snapshot_and_readyz_tells_what_happened(database: str):
    async with idle_house(database) as house, served(house) as url:
        execution = await begun(house)
        before = await ready(house)
        async with a_copy(database) as copy:
            await house.service.pause(execution)
            streams = [path(execution), "/workspaces/default/stream"]
            listeners = [await Listener.connect(url, stream, house.root) for stream in streams]
            first = [(await listener.take(1))[0] for listener in listeners]
            await copy.go_back()
            await refused(house)
            async with asyncio.timeout(PATIENCE):
                again = [(await listener.take(1))[0] for listener in listeners]
        incidents = (await ready(house))["incidents"]

    assert before["incidents"] == []
    assert [each["what"] for each in incidents] == ["the database went back in time"]
    assert [each.kind for each in (*first, *again)] == ["snapshot"] * 4
    assert [each.data["execution"]["state"] for each in (first[0], again[0])] == ["PAUSED", "PENDING"]
    assert again[1].data["executions"] == [{**first[1].data["executions"][0], "seq": 1}]
    assert first[1].id != again[1].id


async def test_a_reader_of_an_execution_that_is_lost_is_told_that_it_is_gone(database: str):
    async with idle_house(database) as house, served(house) as url, a_copy(database) as copy:
        execution = await begun(house)
        listener = await Listener.connect(url, path(execution), house.root)
        await listener.take(1)
        await copy.go_back()
        await refused(house)
        async with asyncio.timeout(PATIENCE):
            said = await listener.everything()

    assert [each.data["reason"] for each in said if each.kind == "end"] == ["gone"]
    assert await ask(database, "select 1 from execution") == []
