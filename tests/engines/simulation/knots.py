"""Executions that wait for each other's keys: each holds one and has a child that wants the other's.

No engine can help there, for each of them may do as it does; a person has to give one of them up.
"""

import sqlite3
from collections.abc import Iterator

HOLDERS = "select workspace, concurrency_key, execution from live where has_key > 0"
WANTING = """
select live.workspace, live.concurrency_key, live.execution
  from live
 inner join queue on queue.id = live.execution and queue.state = 'PENDING'
 where live.has_key = 0 and live.concurrency_key is not null
 order by live.execution
"""
PARENTS = "select id, parent from execution where parent is not null"


def knotted(tables: sqlite3.Connection) -> str | None:
    """One of those that wait for each other, if there are any."""
    waits = _waits(tables)
    for first in waits:
        reached = dict.fromkeys(waits[first])
        while first not in reached:
            further = [each for holder in reached for each in waits.get(holder, ()) if each not in reached]
            if not further:
                break
            reached |= dict.fromkeys(further)
        if first in reached:
            return first
    return None


def _waits(tables: sqlite3.Connection) -> dict[str, list[str]]:
    """For whose end each waits, by itself or by one of those below it."""
    holders: dict[tuple[str, str], list[str]] = {}
    for workspace, key, holder in tables.execute(HOLDERS):
        holders.setdefault((workspace, key), []).append(holder)
    parents = dict(tables.execute(PARENTS))
    waits: dict[str, list[str]] = {}
    for workspace, key, wanting in tables.execute(WANTING):
        line = list(_upwards(wanting, parents))
        # What someone above has, one may use.
        others = [holder for holder in holders.get((workspace, key), ()) if holder not in line]
        for each in line if others else ():
            waits.setdefault(each, []).extend(others)
    return waits


def _upwards(execution: str | None, parents: dict[str, str]) -> Iterator[str]:
    while execution is not None:
        yield execution
        execution = parents.get(execution)
