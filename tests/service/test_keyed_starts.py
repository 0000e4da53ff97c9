"""Starts under idempotency keys go through the group commit, and each key stands for one execution."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.engines.base import Version
from ropewalk.service import Service, reading
from ropewalk.store import executions, idempotency
from ropewalk.store.rows import IdempotencyEntry
from ropewalk.wiring import Settings, open_service

ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}


@pytest.fixture(params=["file", "server"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "ropewalk.db") if request.param == "file" else request.getfixturevalue("database")


@pytest.fixture
async def service(db: str) -> AsyncIterator[Service]:
    async with open_service(Settings(db=db)) as service:
        yield service


async def executions_of(service: Service) -> set[str]:
    found = await reading.list_executions(service.store, "default", executions.ANY, limit=10_000)
    return {each["id"] for each in found}


async def test_keyed_starts_share_their_commits_and_open_no_transaction(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    version = await service.save(ONE)
    await service.start(version, key="the first")

    def refused(*_: Any) -> Any:
        raise AssertionError("a transaction was opened")

    monkeypatch.setattr(service.store, "transaction", refused)
    before = service.engine.commit.commits
    ids = await asyncio.gather(*[service.start(version, number, key=f"k{number}") for number in range(200)])
    monkeypatch.undo()

    assert len(set(ids)) == 200
    assert service.engine.commit.commits - before < 50
    for execution in ids:
        await asyncio.wait_for(service.ended(execution), 30)


async def test_one_key_at_the_same_moment_is_one_execution(service: Service):
    version = await service.save(ONE)

    ids = await asyncio.gather(*[service.start(version, 1, key="k") for _ in range(50)])

    assert len(set(ids)) == 1
    assert await executions_of(service) == set(ids)
    assert await service.start(version, 1, key="k") == ids[0]


async def test_another_request_under_the_same_key_is_a_conflict_also_at_the_same_moment(service: Service):
    version = await service.save(ONE)

    answers = await asyncio.gather(
        *[service.start(version, number % 2, key="k") for number in range(20)], return_exceptions=True
    )

    ids = {each for each in answers if isinstance(each, str)}
    assert len(ids) == 1
    assert [type(each) for each in answers if not isinstance(each, str)] == [Conflict] * 10
    assert await executions_of(service) == ids


async def test_a_start_that_is_cancelled_keeps_its_key(service: Service):
    version = await service.save(ONE)
    first = asyncio.ensure_future(service.start(version, 1, key="k"))
    while not service.engine.memory.lives and not first.done():
        await asyncio.sleep(0)

    first.cancel()
    again = await service.start(version, 1, key="k")

    assert await executions_of(service) == {again}
    assert not service.keys_under_way


async def test_an_answer_that_is_over_frees_its_key(service: Service):
    version = await service.save(ONE)
    old = service.store.now() - idempotency.KEPT - 1
    async with service.store.transaction() as tx:
        await idempotency.remember(tx, IdempotencyEntry("default", "start", "k", "another", '["gone"]', old))

    execution = await service.start(version, 1, key="k")

    assert await service.start(version, 1, key="k") == execution
    assert await executions_of(service) == {execution}


async def test_two_servers_that_get_one_key_together_start_it_once_and_harm_no_other(database: str):
    async with open_service(Settings(db=database)) as one, open_service(Settings(db=database)) as other:
        version = await one.save(ONE)
        theirs = Version(version.workflow, version.version, version.hash, version.plan)
        expected: set[str] = set()
        for round_ in range(20):
            keyed = [
                server.start(which, 1, key=f"k{round_}-{number}")
                for number in range(5)
                for server, which in ((one, version), (other, theirs))
            ]
            others = [server.start(version, 2) for server in (one, other) for _ in range(5)]
            own = [one.start(version, 3, key=f"own{round_}-{number}") for number in range(5)]
            ids = await asyncio.gather(*keyed, *others, *own)
            assert [ids[at] == ids[at + 1] for at in range(0, 10, 2)] == [True] * 5
            expected |= set(ids)

        assert await executions_of(one) == expected
        assert len(expected) == 20 * (5 + 10 + 5)
        for execution in expected:
            ended = await asyncio.wait_for(one.ended(execution), 30)
            assert ended.state == "SUCCESS"
