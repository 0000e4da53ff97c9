"""Searches: what lists are narrowed to, on every kind of store."""

import pytest

from ropewalk.core.state import Resolution
from ropewalk.store import audit, breakers, dlq, executions, runs, workflows
from ropewalk.store.access import Store
from ropewalk.store.dlq import Search
from ropewalk.store.executions import Filter
from ropewalk.store.ids import first_id
from ropewalk.store.rows import AuditEntry, DeadLetterResolution
from ropewalk.store.runs import Attempt, Lease
from tests.store.samples import NOON, SECOND, execution, letter, offer

DEEDS = [("ann", "start", "e1"), ("bob", "start", "e2"), ("ann", "note", "e2")]


@pytest.fixture
async def letters(store: Store) -> Store:
    """Twelve letters, one a second: three executions and workflows in turn, two nodes, the last three discarded."""
    rows = [
        letter(
            f"{first_id(NOON + n * SECOND)}-{n}",
            execution=f"e{n % 3}",
            workflow=f"w{n % 3}",
            node="ab"[n % 2],
            fingerprint=f"f{n % 3}",
            created_at=NOON + n * SECOND,
        )
        for n in range(12)
    ]
    await store.write([("upsert_dead_letter", rows)])
    async with store.transaction() as tx:
        for row in rows[9:]:
            await dlq.resolve(tx, DeadLetterResolution(Resolution.DISCARDED, NOON, "ann", None, row.id))
    return store


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Search(), range(9)),
        (Search(resolution=None), range(12)),
        (Search(resolution=Resolution.DISCARDED), range(9, 12)),
        (Search(workflow="w1"), range(1, 9, 3)),
        (Search(node="b"), range(1, 9, 2)),
        (Search(fingerprint="f2"), range(2, 9, 3)),
        (Search(fingerprint="f2", node="a"), range(2, 9, 6)),
        (Search(since=NOON + 3 * SECOND, until=NOON + 6 * SECOND), range(3, 6)),
        (Search(resolution=None, until=NOON + 10 * SECOND), range(10)),
        (Search(resolution=None, among=("w0",)), range(0, 12, 3)),
        (Search(resolution=None, among=("w0",), workflow="w1"), range(0)),
        (Search(among=("w0", "w1"), fingerprint="f1", node="b"), range(1, 9, 6)),
        (Search(among=()), range(0)),
        (Search(execution="e1"), range(1, 9, 3)),
        (Search(execution="e1", resolution=None, node="b"), range(1, 12, 6)),
        (Search(execution="e1", fingerprint="f2"), range(0)),
        (Search(execution="e1", resolution=None, among=("w0", "w1")), range(1, 12, 3)),
        (Search(execution="e1", resolution=None, among=("w0",)), range(0)),
        (Search(execution="e9"), range(0)),
        (Search(id_part="-1", resolution=None), range(1, 2)),
        (Search(id_part="1", resolution=None), range(1, 12, 10)),
        (Search(id_part=first_id(NOON + 4 * SECOND)), range(4, 5)),
        (Search(id_part="4", among=("w0", "w2")), range(0)),
        (Search(id_part="4", among=("w0", "w1"), fingerprint="f1", execution="e1"), range(4, 5)),
        (Search(id_part="4", among=("w0", "w1"), workflow="w0"), range(0)),
    ],
)
async def test_pages_together_are_every_letter_wanted_newest_first(letters: Store, wanted: Search, expected: range):
    found: list[int] = []
    cursor = dlq.NEWEST
    while page := await dlq.search(letters, "default", wanted, before=cursor, limit=2):
        assert len(page) <= 2
        found += [(row.created_at - NOON) // SECOND for row in page]
        cursor = page[-1].id

    assert found == list(reversed(expected))


async def test_groups_are_narrowed_to_workflows(letters: Store):
    every = await dlq.groups(letters, "default")
    some = await dlq.groups(letters, "default", among=["w0", "w2"], limit=1)
    rest = await dlq.groups(letters, "default", among=["w0", "w2"], after=some[0].cursor)

    assert [(group.fingerprint, group.count) for group in every] == [("f0", 3), ("f1", 3), ("f2", 3)]
    assert [group.fingerprint for group in (*some, *rest)] == ["f0", "f2"]


async def test_executions_are_narrowed_to_workflows_and_not_looked_for_beyond_the_oldest(store: Store):
    rows = [execution(f"e{n}", workflow=f"w{n % 3}") for n in range(9)]
    await store.write([("insert_execution", rows)])

    async def listed(wanted: Filter, before: str = executions.NEWEST) -> list[str]:
        return [row.id for row in await executions.listed(store, "default", wanted, before=before, limit=4)]

    assert await listed(Filter(among=("w0", "w1"))) == ["e7", "e6", "e4", "e3"]
    assert await listed(Filter(among=("w0", "w1")), "e3") == ["e1", "e0"]
    assert await listed(Filter(among=("w0",), workflow="w1")) == []
    assert await listed(Filter(oldest="e7")) == ["e8", "e7"]


async def test_workflows_have_their_names(store: Store):
    async with store.transaction() as tx:
        for name in ("one", "two"):
            await workflows.save(tx, workflows.Draft("default", name, "{}", "", "ann"), f"id of {name}", NOON)

    found = await executions.workflow_names(store, ["id of one", "id of two", "id of none"])

    assert found == {"id of one": "one", "id of two": "two"}


async def test_the_audit_log_is_found_by_who_what_and_whom(store: Store):
    async with store.transaction() as tx:
        for n, (actor, verb, about) in enumerate(
            [("ann", "start", "e1"), ("bob", "start", "e2"), ("ann", "note", "e2")]
        ):
            await audit.append(tx, AuditEntry(f"a{n}", NOON, "default", actor, verb, about, None, None, None))

    async def found(wanted: audit.Filter) -> list[str]:
        return [row.id for row in await audit.listed(store, "default", wanted)]

    assert await found(audit.ANY) == ["a2", "a1", "a0"]
    assert await found(audit.Filter(actor="ann")) == ["a2", "a0"]
    assert await found(audit.Filter(verb="start", object="e2")) == ["a1"]
    assert await found(audit.Filter(actor="eve")) == []


async def test_an_offer_tells_whose_attempt_it_is_and_who_has_it(store: Store):
    await store.write([("insert_offer", [offer("o1", execution="e1", node="a", item=-1, attempt=2)])])
    attempt = Attempt("e1", "a", None, 2)

    assert await runs.offered(store, "o1") == attempt
    assert await runs.offered(store, "o2") is None
    lease = await runs.lease(store, attempt)
    assert isinstance(lease, Lease)
    assert (lease.leased_by, lease.fence, lease.pool) == (None, 0, "default")
    assert await runs.lease(store, Attempt("e1", "a", 0, 2)) is None


async def test_a_breaker_exists_once_a_call_was_counted(store: Store):
    assert not await breakers.exists(store, "default", "shop")
    async with store.transaction() as tx:
        await breakers.lock(tx, "default", "shop")

    assert await breakers.exists(store, "default", "shop")
    assert not await breakers.exists(store, "other", "shop")
