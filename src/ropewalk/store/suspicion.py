"""Executions that were under way when their worker died, and those that are set aside for it.

A row says in how many deaths an execution was under way without anything written about it in between. Nearly always
that is one, and the row goes with the next commit. An execution that has stored much is taken up alone after the first
death; if its worker dies of that as well, it is set aside: it belongs to no worker, and nothing reads it until a person
says so. An execution that was in memory beside it is not: only the one that was being taken up then is named by the
death. A machine that keeps crashing, or a store that cannot be written, is no reason to set anything aside: hence
"much".
"""

from collections.abc import Iterable
from typing import Final

from ropewalk.store.access import Reader, Transaction, json_list
from ropewalk.store.rows import Suspect

SET_ASIDE: Final = "set-aside"
"""Whose an execution is that is set aside; no worker is called that."""
HEAVY = 8 * 2**20
"""What has stored less (bytes) is no reason for a worker to die when it is taken up."""
MOST: Final = 1_000


async def raise_for(tx: Transaction, executions: Iterable[str]) -> None:
    """The worker these were with is dead."""
    await tx.execute_many("upsert_suspicion", [Suspect(execution, 1, 0) for execution in executions])


async def suspects(reader: Reader, executions: Iterable[str]) -> list[Suspect]:
    """Those of these executions that are not to be taken up with others."""
    return [Suspect(*row) for row in await reader.fetch("suspects", json_list(executions), HEAVY)]


async def put_on_trial(tx: Transaction, execution: str) -> None:
    """It is taken up alone from now on."""
    await tx.execute("try_suspect", execution)


async def set_aside(tx: Transaction, execution: str, worker: str, now: int) -> None:
    """The worker has it no more, and no other is to have it."""
    await tx.execute("note_set_aside", now, execution)
    await tx.execute("hand_live", SET_ASIDE, execution, worker)


async def release(tx: Transaction, execution: str, worker: str) -> bool:
    """The worker may try again, with a clean slate; False if it is not set aside any more."""
    if not await tx.execute("hand_live", worker, execution, SET_ASIDE):
        return False
    await tx.execute("delete_suspicion", execution)
    return True


async def deaths(reader: Reader, execution: str) -> tuple[int, int | None]:
    """In how many deaths it was under way, and since when it is set aside."""
    row = await reader.fetch_one("get_suspicion", execution)
    return (0, None) if row is None else (row[0], row[1])


async def all_set_aside(reader: Reader) -> list[str]:
    """The executions that are set aside, up to a bound."""
    return [row[0] for row in await reader.fetch("set_aside", MOST)]
