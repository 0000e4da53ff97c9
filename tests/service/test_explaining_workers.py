"""Why something does not run for want of workers: none, dead ones, and those who take no executions."""

from typing import Any

import pytest

from ropewalk.core.duration import MINUTE
from ropewalk.core.instant import rfc3339
from ropewalk.core.signals import Suspended
from ropewalk.core.waits import Timer
from ropewalk.store.access import Store
from ropewalk.store.sqlite import SqliteStore
from tests.service.told import NOON, burden, codes, explained, hour, node_codes, nodes, put, started, worker
from tests.store.conftest import path, postgres_store, sqlite_store, store
from tests.store.samples import SECOND

__all__ = ["path", "postgres_store", "sqlite_store", "store"]

A = nodes("a")
GPU = nodes("a", pool="gpu")


async def test_a_silent_owner_says_how_long_and_when_it_is_taken_over(store: Store):
    await worker(store, "w1", heard=NOON)
    await worker(store, "w2", heard=NOON + 16 * SECOND)
    await started(store, "e1", A)

    answer = await explained(store, "e1", NOON + 16 * SECOND)
    [reason] = answer["reasons"]

    assert (reason["code"], reason["waitsFor"]) == (
        "OWNER_LOST",
        {"worker": "w1", "lastHeardOf": rfc3339(NOON), "takenOverBy": rfc3339(NOON + 20 * SECOND)},
    )
    assert reason["why"] == f"its worker w1 was last heard of 16s ago; another takes over at {hour(20)} at the latest"
    assert node_codes(answer) == [("a", "ATTEMPT_LOST")]


async def test_an_owner_is_alive_until_its_lease_ends(store: Store):
    await worker(store, "w1", heard=NOON)
    await started(store, "e1", A)

    lease = 3 * SECOND
    found = [codes(await explained(store, "e1", NOON + after, lease=lease)) for after in (lease, lease + 1)]

    assert found == [["RUNNING"], ["NO_WORKER"]]


async def test_a_takeover_that_should_have_been_is_said_to_be_about_to(store: Store):
    await worker(store, "w1", heard=NOON)
    await worker(store, "w2", heard=NOON + 20 * SECOND)
    await started(store, "e1", A)

    [reason] = (await explained(store, "e1", NOON + 20 * SECOND))["reasons"]

    assert reason["why"] == "its worker w1 was last heard of 20s ago; another is about to take over"


async def test_an_owner_the_store_has_forgotten_is_named(store: Store):
    await worker(store, "w2")
    await started(store, "e1", A)

    assert codes(await explained(store, "e1")) == ["OWNER_LOST"]


async def test_a_worker_that_has_left_is_not_said_to_be_silent_for_ages(store: Store):
    await worker(store, "w1", heard=0)
    await worker(store, "w2")
    await started(store, "e1", A)

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]) == ("OWNER_LOST", {"worker": "w1"})
    assert reason["why"] == "its worker w1 has left; another takes over at once"


async def test_without_any_worker_the_last_one_is_named(store: Store):
    await worker(store, "w1", heard=NOON)
    await put(store, "e1", A)

    answer = await explained(store, "e1", NOON + MINUTE)
    [reason] = answer["reasons"]

    assert (reason["code"], reason["action"]) == ("NO_WORKER", "start a worker")
    assert reason["waitsFor"] == {"worker": "w1", "lastHeardOf": rfc3339(NOON)}
    assert reason["why"] == "no worker is alive; w1 was last heard of 1m ago"
    assert [(node["code"], node["waitsFor"]) for node in answer["nodes"]] == [("EXECUTION", {"code": "NO_WORKER"})]


@pytest.mark.parametrize("about", [{"slots": 0}, {"pool": "gpu"}])
async def test_a_worker_that_takes_no_executions_is_not_waited_for(store: Store, about: dict[str, Any]):
    await worker(store, "s1", **about)
    await put(store, "e1", A)
    await started(store, "e2", A, owner="gone")

    answers = [await explained(store, execution) for execution in ("e1", "e2")]

    for answer in answers:
        [reason] = answer["reasons"]
        assert (reason["code"], reason["action"]) == ("NO_WORKER", "start a worker")
        assert reason["why"] == (
            "no worker takes executions; those who are alive accept only, serve a pool or are leaving: s1"
        )


async def test_room_at_a_worker_that_takes_no_executions_is_no_room(sqlite_store: SqliteStore):
    await worker(sqlite_store, "w1", slots=3)
    await worker(sqlite_store, "g1", slots=3, pool="gpu")
    burden(sqlite_store, "w1", 3)
    await put(sqlite_store, "e1", A)

    assert codes(await explained(sqlite_store, "e1")) == ["WORKERS_FULL"]


async def test_a_timer_that_is_due_says_what_it_waits_for_now(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A, Suspended("a", 1, Timer(NOON + 5 * SECOND)))

    said = [(await explained(store, "e1", NOON + after * SECOND))["reasons"][0]["why"] for after in (4, 5)]

    assert said == [
        f"waits until {hour(5)}",
        f"was to wait until {hour(5)}; it goes on as soon as a worker wakes it",
    ]
