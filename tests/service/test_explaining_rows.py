"""Why something does not run where several workers share the store: reasons that take a fleet, put there by hand."""

import pytest

from ropewalk.core.breaker import Breaker, BreakerState
from ropewalk.core.duration import MINUTE
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import Parent
from ropewalk.core.instant import rfc3339
from ropewalk.core.rate_limit import RateLimit
from ropewalk.core.signals import Failed, Suspended
from ropewalk.core.waits import BreakerWait, ChildWait, RateLimitWait, TypeWait
from ropewalk.store import breakers, inbox, offers, rate_limits
from ropewalk.store.access import Store
from ropewalk.store.rate_limits import EVERYWHERE
from ropewalk.store.rows import NewSignal
from ropewalk.store.sqlite import SqliteStore
from tests.service.told import NOON, burden, codes, explained, hour, node_codes, nodes, put, started, worker
from tests.store.conftest import path, postgres_store, sqlite_store, store
from tests.store.samples import SECOND, offer, waiting

__all__ = ["path", "postgres_store", "sqlite_store", "store"]

A = nodes("a")
GPU = nodes("a", pool="gpu")


# The queue


async def test_its_turn_is_all_that_is_missing(store: Store):
    await worker(store, "w1")
    await put(store, "e1", A)

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]) == ("TURN", {"workspace": "default", "position": 1, "waiting": 1})


@pytest.mark.parametrize(
    ("others", "words"),
    [({"priority": 5}, "it is 1st of more than 10,000 in the queue"),
     ({"priority": 9}, "more than 10,000 go before it in the queue")],
)  # fmt: skip
async def test_a_place_in_a_very_long_queue_is_said_as_far_as_it_is_counted(
    store: Store, others: dict[str, int], words: str
):
    await worker(store, "w1")
    await put(store, "e1", A)
    rows = [waiting(f"q{n}", enqueued_at=NOON + 1, not_before=NOON, **others) for n in range(10_000)]
    await store.write([("insert_queue", rows)])

    [reason] = (await explained(store, "e1"))["reasons"]

    assert reason["why"] == f"it starts as soon as a worker takes it; {words}"
    assert reason["waitsFor"]["waiting"] is None


async def test_full_workers_are_named_with_their_load(sqlite_store: SqliteStore):
    for name in ("w1", "w2"):
        await worker(sqlite_store, name, slots=3)
        burden(sqlite_store, name, 3)
    await put(sqlite_store, "e1", A)

    [reason] = (await explained(sqlite_store, "e1"))["reasons"]

    assert reason["code"] == "WORKERS_FULL"
    assert reason["waitsFor"]["workers"] == [{"id": name, "load": 3, "slots": 3} for name in ("w1", "w2")]
    assert reason["why"] == "every worker is full; it is 1st of 1 in the queue: w1 (3 of 3), w2 (3 of 3)"


async def test_one_worker_with_room_is_enough(sqlite_store: SqliteStore):
    for name, load in (("w1", 3), ("w2", 2)):
        await worker(sqlite_store, name, slots=3)
        burden(sqlite_store, name, load)
    await put(sqlite_store, "e1", A)

    assert codes(await explained(sqlite_store, "e1")) == ["TURN"]


async def test_a_backoff_says_until_when_after_how_many_attempts_and_why(store: Store):
    await worker(store, "w1")
    await put(store, "e1", A)
    await store.write([("return_queue", [("PENDING", NOON + 8 * SECOND, 2, "the engine is away", "e1")])])

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]) == (
        "NOT_BEFORE",
        {"notBefore": rfc3339(NOON + 8 * SECOND), "attempts": 2, "error": "the engine is away"},
    )
    assert reason["why"] == (
        f"it is not dispatched before {hour(8)} after 2 attempts; the last trouble: the engine is away"
    )
    assert codes(await explained(store, "e1", NOON + 8 * SECOND)) == ["TURN"]


@pytest.mark.parametrize(
    ("heard", "released"), [(NOON, NOON + 5 * MINUTE), (NOON - MINUTE, NOON - MINUTE + 20 * SECOND)]
)
async def test_a_claim_says_whose_since_when_and_when_it_ends(store: Store, heard: int, released: int):
    await worker(store, "w1", heard=heard)
    await worker(store, "w2")
    await put(store, "e1", A)
    async with store.transaction() as tx:
        await tx.execute("claim_queue", '["e1"]', "w1", NOON)

    [reason] = (await explained(store, "e1"))["reasons"]

    assert reason["code"] == "CLAIMED"
    assert reason["waitsFor"] == {"worker": "w1", "claimedAt": rfc3339(NOON), "releasedAt": rfc3339(released)}


async def test_what_could_not_be_dispatched_says_why(store: Store):
    await worker(store, "w1")
    await put(store, "e1", A)
    await store.write([("return_queue", [("FAILED", NOON, 3, "there is no version 4", "e1")])])

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]) == (
        "DISPATCH_FAILED",
        {"attempts": 3, "error": "there is no version 4"},
    )


async def test_a_key_of_an_ancestor_holds_no_child(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A, key="k", has_key=1)
    await put(store, "e2", A, key="k", parent=Parent("e1", "a", 1, ancestors=("e1",)))
    await put(store, "e3", A, key="k")

    assert codes(await explained(store, "e2")) == ["TURN"]
    assert codes(await explained(store, "e3")) == ["CONCURRENCY_KEY"]


async def test_what_was_told_and_not_taken_in_is_said(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A)
    async with store.transaction() as tx:
        await inbox.send(tx, NewSignal("i1", "e1", '{"type":"Cancel","by":"ada"}', NOON - SECOND))

    reason = (await explained(store, "e1"))["reasons"][-1]

    assert reason["code"] == "UNREAD_SIGNALS"
    assert reason["waitsFor"] == {"signals": ["Cancel"], "since": rfc3339(NOON - SECOND)}


async def test_an_inbox_message_that_was_read_and_waits_for_its_asker_is_no_reason(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A)
    async with store.transaction() as tx:
        await inbox.ask(tx, NewSignal("i1", "e1", '{"type":"Cancel","by":"ada"}', NOON), "ada")
        await tx.execute("answer_inbox", "{}", "i1")

    assert codes(await explained(store, "e1")) == ["RUNNING"]


# Attempts that others carry out


@pytest.mark.parametrize(
    ("pool", "load", "code"), [("default", 0, "NO_WORKER_IN_POOL"), ("gpu", 0, "TURN"), ("gpu", 2, "WORKER_FULL")]
)
@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_node_with_a_pool_waits_for_a_worker_of_that_pool(
    sqlite_store: SqliteStore, pool: str, load: int, code: str, is_shared: bool
):
    await worker(sqlite_store, "w1")
    await worker(sqlite_store, "w2", pool=pool, slots=2)
    burden(sqlite_store, "w2", load)
    await started(sqlite_store, "e1", GPU, room=1 if is_shared else 0)
    if is_shared:
        await share(sqlite_store)

    [answer] = (await explained(sqlite_store, "e1"))["nodes"]

    assert answer["code"] == code


async def share(store: Store, leased_until: int | None = None, **changes: object) -> None:
    """Attempt 1 of `a` may be leased by anyone, and is if it is said until when."""
    await store.write([("insert_offer", [offer("o1", **changes)])])
    if leased_until is not None:
        async with store.transaction() as tx:
            await offers.lease(tx, "default", "gpu-1", leased_until, NOON - MINUTE, 1)


async def test_no_worker_for_a_pool_says_what_helps(store: Store):
    await worker(store, "w1")
    await started(store, "e1", GPU)
    await share(store)

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["node"], reason["waitsFor"]) == ("NO_WORKER_IN_POOL", "a", {"pool": "gpu"})
    assert reason["why"] == "ready; no worker is alive for pool gpu"
    assert reason["action"] == "start a worker with --pool gpu, or a runner that leases from it"


async def test_a_leased_attempt_runs_where_it_is_leased(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A)
    await share(store, leased_until=NOON + SECOND)

    [answer] = (await explained(store, "e1"))["nodes"]

    assert (answer["code"], answer["waitsFor"]["worker"]) == ("RUNNING", "gpu-1")


async def test_a_lease_that_has_ended_is_a_lost_attempt(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A)
    await share(store, leased_until=NOON - SECOND)

    [answer] = (await explained(store, "e1"))["nodes"]

    assert (answer["code"], answer["waitsFor"]) == (
        "ATTEMPT_LOST",
        {"worker": "gpu-1", "leaseUntil": rfc3339(NOON - SECOND)},
    )


async def test_a_shared_run_of_an_earlier_attempt_says_nothing_about_this_one(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A)
    await share(store, attempt=7)

    assert codes(await explained(store, "e1")) == ["RUNNING"]


# Breakers and children that change meanwhile


@pytest.mark.parametrize(
    ("breaker", "until", "words"),
    [
        (Breaker(BreakerState.OPEN, 9, 3, next_retry=NOON + 9 * SECOND), 9,
         "is open until {}: 9 of 12 calls failed in its window (75 %)"),
        (Breaker(BreakerState.OPEN, 5, 3, next_retry=NOON), 0,
         "is open, and to be tried again since {}: 5 of 8 calls failed in its window (62.5 %)"),
        (Breaker(BreakerState.HALF_OPEN, 5, probe_until=NOON + 7 * SECOND), 7,
         "lets a few calls through to see whether it is back, until {}"),
        (Breaker(), 5, "has closed; the attempt goes on at {} at the latest"),
    ],
)  # fmt: skip
async def test_a_breaker_is_as_the_store_has_it_now(store: Store, breaker: Breaker, until: int, words: str):
    await worker(store, "w1")
    await started(store, "e1", A, Suspended("a", 1, BreakerWait("shop", NOON + 5 * SECOND)))
    async with store.transaction() as tx:
        await breakers.put(tx, "default", "shop", breaker)

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["waitsFor"]["state"], reason["waitsFor"]["until"]) == (
        str(breaker.state), rfc3339(NOON + until * SECOND),
    )  # fmt: skip
    assert reason["why"] == f"the breaker of shop {words.format(hour(until))}"


async def test_a_rate_limit_is_named_with_the_place_in_line_and_the_time(store: Store):
    await worker(store, "w1")
    wait = RateLimitWait("shop", NOON + 4 * SECOND, NOON + 5 * SECOND, ("shop",))
    await started(store, "e1", A, Suspended("a", 1, wait))
    rate = RateLimit(10, SECOND)
    async with store.transaction() as tx:
        await rate_limits.lock(tx, EVERYWHERE, "shop", rate)
        await rate_limits.hand_out(tx, EVERYWHERE, "shop", rate, ((NOON + 9 * SECOND, 1),))

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]) == (
        "RATE_LIMIT", {"limit": "shop", "rate": "10 per 1s", "place": 48, "until": rfc3339(NOON + 5 * SECOND)},
    )  # fmt: skip
    assert reason["why"] == f"waits for the rate limit 'shop' (10 per 1s): 48th in line, its turn is at {hour(5)}"


async def test_a_rate_limit_that_no_worker_knew_is_named_with_what_helps(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A, Suspended("a", 1, RateLimitWait("shop", NOON + 5 * SECOND)))

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]["place"]) == ("RATE_LIMIT", None)
    assert reason["why"] == f"no slot of the rate limit 'shop' could be had; it is asked for again at {hour(5)}"
    assert "`rate_limits`" in reason["action"]


async def test_a_node_type_that_no_worker_knew_is_named_with_what_helps(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A, Suspended("a", 1, TypeWait("rare", NOON + 5 * SECOND)))

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]) == (
        "NODE_TYPE", {"type": "rare", "until": rfc3339(NOON + 5 * SECOND)},
    )  # fmt: skip
    assert reason["why"] == (
        f"the worker that had it does not know the node type 'rare'; another may take it from {hour(5)} on"
    )
    assert "--nodes" in reason["action"]


async def test_a_child_that_is_not_there_yet_is_named_all_the_same(store: Store):
    await worker(store, "w1")
    await started(store, "e1", A, Suspended("a", 1, ChildWait("e2", "other")))

    [reason] = (await explained(store, "e1"))["reasons"]

    assert (reason["code"], reason["waitsFor"]["state"], reason["waitsFor"]["reason"]) == ("CHILD", None, None)
    assert reason["why"] == "waits for execution e2 of other"


async def test_children_of_children_are_not_followed(store: Store):
    await worker(store, "w1")
    for number in (1, 2, 3):
        await started(store, f"e{number}", A, Suspended("a", 1, ChildWait(f"e{number + 1}", "next")))

    [reason] = (await explained(store, "e1"))["reasons"]

    assert reason["waitsFor"]["reason"]["waitsFor"] == {
        "execution": "e3", "workflow": "next", "state": None, "reason": None,
    }  # fmt: skip


# Size


async def test_of_many_nodes_those_merely_behind_others_are_left_out_and_counted(store: Store):
    await worker(store, "w1")
    ids = [f"n{number}" for number in range(300)]
    edges = [{"from": "first", "to": name} for name in ids]
    await started(store, "e1", {"nodes": nodes(*ids, "first", "last")["nodes"], "edges": edges})

    answer = await explained(store, "e1")

    assert (len(answer["nodes"]), answer["nodesLeftOut"]) == (200, 102)
    assert [name for name, code in node_codes(answer) if code == "RUNNING"] == ["first", "last"]


async def test_of_a_long_error_the_sentence_has_the_beginning_and_the_details_have_it_all(store: Store):
    await worker(store, "w1")
    message = "no\nluck " * 100
    await started(store, "e1", A, Failed("a", 1, RunError(ErrorType.TRANSIENT, message)))

    [reason] = (await explained(store, "e1"))["reasons"]

    assert reason["waitsFor"]["error"] == message
    assert reason["why"].endswith("…")
    assert "\n" not in reason["why"]
    assert len(reason["why"]) < 300
