"""A simulation gives up whoever waits for each other's keys, and nobody else."""

import sqlite3
from collections.abc import Iterator

import pytest

from tests.engines.simulation.knots import knotted

TABLES = """
create table live (execution, workspace, concurrency_key, has_key);
create table queue (id, state);
create table execution (id, parent);
"""


@pytest.fixture
def tables() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    yield connection
    connection.close()


def holds(tables: sqlite3.Connection, execution: str, key: str) -> None:
    tables.execute("insert into live values (?, 'w', ?, 1)", (execution, key))


def wants(tables: sqlite3.Connection, execution: str, key: str, parent: str | None = None) -> None:
    tables.execute("insert into live values (?, 'w', ?, 0)", (execution, key))
    tables.execute("insert into queue values (?, 'PENDING')", (execution,))
    tables.execute("insert into execution values (?, ?)", (execution, parent))


def test_two_whose_children_want_each_others_keys_are_knotted(tables: sqlite3.Connection):
    holds(tables, "a", "1")
    holds(tables, "b", "2")
    wants(tables, "child of a", "2", "a")
    wants(tables, "child of b", "1", "b")

    assert knotted(tables) in ("a", "b")


def test_whoever_only_waits_its_turn_is_not_knotted(tables: sqlite3.Connection):
    holds(tables, "a", "1")
    holds(tables, "b", "2")
    wants(tables, "child of a", "2", "a")
    wants(tables, "c", "1")

    assert knotted(tables) is None


def test_a_key_that_someone_above_has_is_no_knot(tables: sqlite3.Connection):
    holds(tables, "a", "1")
    wants(tables, "child of a", "1", "a")

    assert knotted(tables) is None
