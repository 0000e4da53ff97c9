"""Workflows as they were a moment ago."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from ropewalk.core.duration import MILLISECOND
from ropewalk.service import definitions
from ropewalk.service.known import BELIEVED_IF_SHARED, KnownWorkflows
from ropewalk.store import workflows
from ropewalk.store.access import Row, Store, Value
from ropewalk.wiring import Settings, open_service

ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}


async def test_a_workflow_is_read_once_in_a_moment_and_anew_when_it_is_changed_here(tmp_path: Path):
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db"))) as service:
        saved = await service.save(ONE)
        first = await service.known.get(saved.workflow)
        again = await service.known.get(saved.workflow)
        assert first is not None
        await definitions.archive(service, first, "test")
        changed = await service.known.get(saved.workflow)

    assert again is first
    assert changed is not None
    assert changed.archived_at is not None


async def test_what_others_change_is_seen_a_moment_later(tmp_path: Path):
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db"))) as service:
        saved = await service.save(ONE)
        await service.known.get(saved.workflow)
        async with service.store.transaction() as tx:
            await workflows.archive(tx, "default", saved.workflow, service.store.now())
        seen = service.store.now() + 1_000 * MILLISECOND
        while (found := await service.known.get(saved.workflow)) and found.archived_at is None:
            assert service.store.now() < seen

    assert found is not None


class Distant:
    """A shared store: it answers in another turn of the loop, counts how often it is asked, and has a clock to move.

    There is one workflow in it.
    """

    is_shared = True

    def __init__(self, store: Store, workflow: str) -> None:
        self._store = store
        self.workflow = workflow
        self.looks = 0
        self.time = 0

    def now(self) -> int:
        return self.time

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        self.looks += 1
        await asyncio.sleep(0)
        return await self._store.fetch_one(name, *arguments)


@pytest.fixture
async def distant(tmp_path: Path) -> AsyncIterator[Distant]:
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db"))) as service:
        yield Distant(service.store, (await service.save(ONE)).workflow)


async def test_those_who_ask_at_the_same_time_share_one_look_and_one_who_leaves_takes_nothing_away(distant: Distant):
    known = KnownWorkflows(cast(Store, distant), "default")
    asking = [asyncio.ensure_future(known.get(distant.workflow)) for _ in range(5)]
    await asyncio.sleep(0)
    asking[0].cancel()
    found = await asyncio.gather(*asking[1:])

    assert found[0] is not None
    assert all(each is found[0] for each in found)
    assert distant.looks == 1


async def test_in_a_rush_no_caller_waits_for_the_look_that_keeps_what_is_known_fresh(distant: Distant):
    known = KnownWorkflows(cast(Store, distant), "default")
    first = await known.get(distant.workflow)
    looks = [distant.looks]
    for distant.time in (BELIEVED_IF_SHARED // 2 - 1, BELIEVED_IF_SHARED // 2, BELIEVED_IF_SHARED // 2 + 1):
        asked = known.get(distant.workflow)
        with pytest.raises(StopIteration) as answered:
            asked.send(None)
        assert answered.value.value is first
        looks.append(len(known._known.asked))
    await known._known.asked[distant.workflow]
    distant.time = BELIEVED_IF_SHARED
    renewed = await known.get(distant.workflow)

    assert looks == [1, 0, 1, 1]
    assert renewed is not first
    assert distant.looks == 2


async def test_what_is_known_is_believed_no_longer_than_a_moment(distant: Distant):
    known = KnownWorkflows(cast(Store, distant), "default")
    first = await known.get(distant.workflow)
    distant.time = BELIEVED_IF_SHARED
    again = await known.get(distant.workflow)

    assert again is not first
    assert distant.looks == 2


async def test_what_others_say_they_have_changed_is_looked_up_at_once(distant: Distant):
    changes = [0]
    known = KnownWorkflows(cast(Store, distant), "default", lambda: changes[0])
    first = await known.get(distant.workflow)
    changes[0] += 1
    again = await known.get(distant.workflow)

    assert again is not first
    assert distant.looks == 2
