"""Setting the time of a store back to that of the machine, when the machine's clock was ahead once.

Store time never goes back by itself, so that nothing is dated before what it follows. Executions keep that for
themselves: one that has an event of the future is dated no earlier than that event, at any time of the store.
"""

import time
from typing import Final

from msgspec import Struct

from ropewalk.core.errors import Conflict
from ropewalk.store.sqlite.connection import check_path, connect_writer, statements
from ropewalk.store.sqlite.faults import at_the_door
from ropewalk.store.sqlite.ownership import Ownership

_AHEAD: Final = """
select count(*)
  from live
 where exists (select 1
                 from log
                where log.execution = live.execution and json_valid(cast(entry as text))
                  and json_extract(cast(entry as text), '$.events[#-1].at') > ?1)"""


class ClockReset(Struct, frozen=True):
    """How far (µs) the store was ahead, and how many unfinished executions have events of the future."""

    ahead: int
    executions: int


def reset_clock(path: str, *, is_forced: bool = False, wall: int | None = None) -> ClockReset:
    """Sets the store's time to the machine's. StoreInUse if a process works on it; Conflict, unless it is forced, if
    unfinished executions have events of the future.
    """
    now = time.time_ns() // 1000 if wall is None else wall
    with at_the_door(path):
        check_path(path, create=False)
        ownership, done = Ownership(path, now), None
        try:
            done = _reset(path, ownership, now, is_forced=is_forced)
            return done
        finally:
            ownership.release(is_closed=done is not None)


def _reset(path: str, ownership: Ownership, now: int, *, is_forced: bool) -> ClockReset:
    connection = connect_writer(path, now, ownership.left)
    try:
        latest = connection.execute(statements()["latest_mark"]).fetchone()[0]
        found = ClockReset(max(0, (latest or 0) - now), connection.execute(_AHEAD, (now,)).fetchone()[0])
        if found.executions and not is_forced:
            raise Conflict(
                f"{found.executions:,} unfinished executions have events of the future, and what they wait for would "
                "come that much later: let them end (`ropewalk resume`) or cancel them first, or say --force"
            )
        connection.execute(statements()["reset_marks"], (now,))
        return found
    finally:
        connection.close()
