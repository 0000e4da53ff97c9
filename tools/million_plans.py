"""How the database carries out the statements that must not get slower as history grows."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

import asyncpg

from ropewalk.store.access import json_list
from ropewalk.store.address import is_shared
from ropewalk.store.postgres.arrays import written
from ropewalk.store.postgres.bulk import composed
from ropewalk.store.postgres.connection import CHANGING, WRITING
from ropewalk.store.postgres.connection import statements as postgres_statements
from ropewalk.store.sqlite.connection import statements as sqlite_statements

NOW: Final = 2_000_000_000_000_000
SOME: Final = "01900000-0028-7000-8000-00009e3779b1"
ASKED: Final[dict[str, tuple[Any, ...]]] = {
    "any_waiting": (NOW,),
    "lock_waiting_workspaces": (NOW, "", 256),
    "count_slots": ("default",),
    "claimable": ("default", NOW, 100),
    "claim_keyed_live": ("w1", SOME),
    "claim_live": (f'["{SOME}"]', "w1"),
    "claim_queue": (f'["{SOME}"]', "w1", NOW),
    "due_live": (NOW, 100),
    "next_wake": (),
    "owned_live": ("w1", "", 100),
    "silent_workers": (NOW, NOW, 20),
    "messages_for": ("w1", 100),
    "written_rows": (json_list([SOME]),),
    "whole_logs": (json_list([SOME]),),
    "versions_of": (json_list([SOME]),),
    "last_entry": (SOME,),
    "log_entries": (SOME, 1, 1000),
    "get_execution": ("default", SOME),
    "lease_offers": ("default", 10, "w1", NOW, NOW),
    "expired_offers": (NOW, 100),
    "list_executions": ("default", "~", None, None, None, 0, NOW, "", 50, None, 0, None, None),
    "list_runs": (SOME, "", None, None, 50),
}
WRITTEN: Final[dict[str, tuple[Any, ...]]] = {
    "insert_log": (SOME, 9, b"{}"),
    "set_execution": ("SUCCESS", 1, 2, None, SOME),
    "update_live": ("w1", 2, None, 1, 0, SOME),
    "delete_live": (SOME,),
    "delete_queue": (SOME,),
    "upsert_run": (SOME, SOME, "n0", None, 1, "SUCCESS", None, None, 1, 2, None, None),
}
HISTORY: Final = ("execution", "log", "run", "audit")
"""What grows for ever: to walk through one of these is to get slower."""


async def shown(db: str) -> list[str]:
    """Every plan, each under the name of its statement."""
    found = await _postgres(db) if is_shared(db) else _sqlite(db)
    return [line for name, plan in found.items() for line in lines(name, plan)]


def lines(name: str, plan: Sequence[str]) -> Iterator[str]:
    """The verdict, then the plan."""
    walked = [table for table in HISTORY for line in plan if is_walked(table, line)]
    yield f"\n{name}: {'walks through ' + ', '.join(walked) + ' ✗' if walked else 'by index ✓'}"
    for line in plan:
        yield f"    {line}"


def is_walked(table: str, line: str) -> bool:
    """PostgreSQL says `Seq Scan on log`, SQLite `SCAN log`; with an index, both say so."""
    return bool(re.search(rf"Seq Scan on {table}\b|\bSCAN {table}\b(?!.*USING)", line))


async def _postgres(db: str) -> dict[str, list[str]]:
    plans: dict[str, list[str]] = {}
    changing = await asyncpg.connect(db, server_settings=CHANGING)
    writing = await asyncpg.connect(db, server_settings=WRITING)
    try:
        for name, arguments in ASKED.items():
            plans[name] = await explained(changing, postgres_statements()[name], arguments)
        for name, row in WRITTEN.items():
            plain = await writing.prepare(postgres_statements()[name])
            kinds = tuple(parameter.name for parameter in plain.get_parameters())
            many = composed(((name, ()),), {name: kinds}, is_fenced=False)
            plans[f"{name}, in bulk"] = await explained(
                writing, many, [written(*each) for each in zip(kinds, [[value] for value in row], strict=True)]
            )
    finally:
        await changing.close()
        await writing.close()
    return plans


async def explained(connection: Any, text: str, arguments: Sequence[Any]) -> list[str]:
    """How PostgreSQL would carry the statement out."""
    return [row[0] for row in await connection.fetch(f"explain (costs off) {text}", *arguments)]


def _sqlite(db: str) -> dict[str, list[str]]:
    connection = sqlite3.connect(db)
    try:
        return {
            name: [row[3] for row in connection.execute(f"explain query plan {sqlite_statements()[name]}", arguments)]
            for name, arguments in (ASKED | WRITTEN).items()
        }
    finally:
        connection.close()
