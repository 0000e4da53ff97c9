"""Rows written together are the rows written one by one."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ropewalk.store.sqlite.bulk import carry_out
from ropewalk.store.sqlite.connection import connect_writer, statements

Rows = list[tuple[Any, ...]]


def log_rows(count: int) -> Rows:
    return [(f"x{place}", 1, b"entry %d" % place) for place in range(count)]


def run_rows(count: int) -> Rows:
    """Every third says something new about a run that was there before it in the same batch."""
    return [
        (f"r{place - place % 3 // 2}", "x", "n", None if place % 2 else 7, 1, "SUCCESS", None, None, place, place, None,
         None, "t")
        for place in range(count)
    ]  # fmt: skip


def offer_rows(count: int) -> Rows:
    """A statement with a literal among its values."""
    return [(f"o{place}", "x", "w", "n", -1, 1, "default", "{}", place) for place in range(count)]


KINDS: dict[str, tuple[str, Callable[[int], Rows]]] = {
    "insert_log": ("log", log_rows),
    "upsert_run": ("run", run_rows),
    "insert_offer": ("offer", offer_rows),
}


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 200, 256, 600])
@pytest.mark.parametrize("name", KINDS)
def test_rows_written_together_are_those_written_one_by_one(tmp_path: Path, name: str, count: int):
    table, make = KINDS[name]
    text, rows = statements()[name], make(count)

    together = written(tmp_path / "together.db", table, lambda writer: carry_out(writer, text, rows))

    assert together == written(tmp_path / "apart.db", table, lambda writer: writer.executemany(text, rows))


@pytest.mark.parametrize("count", [1, 8, 75])
def test_only_the_rows_named_are_removed(tmp_path: Path, count: int):
    gone = [(f"x{place}",) for place in range(count)]

    def write(writer: Any) -> None:
        carry_out(writer, statements()["insert_log"], log_rows(80))
        carry_out(writer, statements()["remove_log"], gone)

    left = written(tmp_path / "ropewalk.db", "log", write)

    assert left == sorted(log_rows(80)[count:])


@pytest.mark.parametrize("error", [None, "boom"])
@pytest.mark.parametrize("count", [1, 8, 75, 300])
def test_only_the_rows_named_are_changed_each_as_it_is_told(tmp_path: Path, count: int, error: str | None):
    told = [("SUCCESS" if place % 2 else "FAILED", place, 1000 + place, error, f"x{place}") for place in range(count)]

    def write(writer: Any, carry_out: Callable[..., object]) -> None:
        new = [(f"x{place}", "w", "f", 1, "PENDING", "MANUAL", *[None] * 5, 1, None, "t") for place in range(310)]
        writer.executemany(statements()["insert_execution"], new)
        carry_out(statements()["set_execution"], told)

    together = written(tmp_path / "a.db", "execution", lambda writer: write(writer, partial(carry_out, writer)))

    assert together == written(tmp_path / "b.db", "execution", lambda writer: write(writer, writer.executemany))


def test_updates_of_one_row_are_carried_out_one_after_another(tmp_path: Path):
    rows = [("RUNNING" if place < 99 else "SUCCESS", place, None, None, "x") for place in range(100)]

    def write(writer: Any) -> None:
        new = ("x", "w", "f", 1, "PENDING", "MANUAL", None, None, None, None, None, 1, None, "t")
        carry_out(writer, statements()["insert_execution"], [new])
        carry_out(writer, statements()["set_execution"], rows)

    (row,) = written(tmp_path / "ropewalk.db", "execution", write)

    assert (row[4], row[12]) == ("SUCCESS", 99)


def written(path: Path, table: str, write: Callable[[Any], object]) -> Sequence[tuple[Any, ...]]:
    """What the table holds after that."""
    writer = connect_writer(str(path), 0)
    try:
        write(writer)
        return writer.execute(f"select * from {table} order by 1, 2").fetchall()
    finally:
        writer.close()
