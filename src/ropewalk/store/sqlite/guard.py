"""Ends the work of a process whose store was moved, removed or replaced, also when it has nothing to write."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ropewalk.store.errors import StoreReplaced, StoreUnavailable
from ropewalk.store.sqlite.store import SqliteStore

LOOKS_EVERY: Final = 1.0


@asynccontextmanager
async def guarded(store: SqliteStore) -> AsyncIterator[None]:
    """The block is broken off with a StoreReplaced once the files of the store are no longer at their path."""
    block = asyncio.current_task()
    assert block is not None, "a store is opened by a task"
    watching = asyncio.get_running_loop().create_task(_replaced(store))

    def break_off(found: "asyncio.Task[StoreReplaced]") -> None:
        if not found.cancelled():
            block.cancel()

    watching.add_done_callback(break_off)
    try:
        yield
    except asyncio.CancelledError:
        if watching.done() and not watching.cancelled():
            raise watching.result() from None
        raise
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _replaced(store: SqliteStore) -> StoreReplaced:
    """Waits until the files of the store are no longer at their path; what is to be said of it."""
    while True:
        await asyncio.sleep(LOOKS_EVERY)
        try:
            store.check_files()
        except StoreReplaced as error:
            return error
        except StoreUnavailable:
            continue  # it stopped for another reason, and every request is told which
