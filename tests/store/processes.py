"""Other processes that use a store: `python -m tests.store.processes <what> <path> …`. Each line is a step taken.

They wait on their standard input, so that a test decides when they go on and none outlives it.
"""

import asyncio
import os
import resource
import sqlite3
import sys

from ropewalk.core.errors import RopewalkError
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.sqlite import SqliteReader, SqliteStore
from tests.store.samples import entries


def say(line: object) -> None:
    print(line, flush=True)  # noqa: T201 (the way to the test)


async def own(path: str) -> None:
    """Owns the store until told to go."""
    store = await SqliteStore.open(path)
    say("owner")
    await asyncio.to_thread(sys.stdin.readline)
    await store.close()


async def own_and_write(path: str) -> None:
    """Owns the store with something in it until told to go."""
    store = await SqliteStore.open(path)
    await store.write([("insert_log", [("e1", 1, b"{}")])])
    say("written")
    await asyncio.to_thread(sys.stdin.readline)


async def open_and_close(path: str) -> None:
    """Comes and goes as any tool for SQLite does."""
    connection = sqlite3.connect(path)
    connection.execute("select count(*) from log").fetchall()
    connection.close()
    say("closed")


async def own_and_fork(path: str) -> None:
    """Owns the store and has a child that lives on."""
    await SqliteStore.open(path)
    if os.fork() == 0:
        sys.stdin.readline()
        os._exit(0)
    say("owner")
    await asyncio.to_thread(sys.stdin.readline)


async def write(path: str, rows: str) -> None:
    """Writes batches without end, each an execution's log of so many entries, and says which is durable."""
    store = await SqliteStore.open(path)
    for number in range(1_000_000):
        name = f"{os.getpid()}-{number}"
        await store.write([("insert_log", entries(name, int(rows)))])
        say(name)


async def fill(path: str, size: str) -> None:
    """Writes until the file system takes no more, says what that was and what is kept, then writes again."""
    store = await SqliteStore.open(path)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), most))
    number = await _write_until_refused(store)
    say(len(await store.fetch("log_entries", f"e{number - 1}", 1, 10)))
    say(len(await store.fetch("log_entries", f"e{number}", 1, 10)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    await store.write([("insert_log", entries(f"e{number}", 2))])
    say(len(await store.fetch("log_entries", f"e{number}", 1, 10)))
    await store.close()


async def _write_until_refused(store: SqliteStore) -> int:
    for number in range(10_000):
        try:
            await store.write([("insert_log", [(f"e{number}", 1, b"x" * 10_000), (f"e{number}", 2, b"x" * 10_000)])])
        except RopewalkError as error:
            say(type(error).__name__)
            return number
    raise AssertionError("the limit was never reached")


async def attempt(path: str, user: str) -> None:
    """Tries to open the store as another user."""
    if os.geteuid() == 0:
        os.seteuid(int(user))
    try:
        await SqliteStore.open(path)
    except RopewalkError as error:
        say(type(error).__name__)
        say(error)


async def read(path: str) -> None:
    """Reads the store beside its owner."""
    reader = await SqliteReader.open(path)
    say(len(await reader.fetch("log_entries", "e1", 1, 100)))
    await asyncio.to_thread(sys.stdin.readline)
    say(len(await reader.fetch("log_entries", "e1", 1, 100)))
    await reader.close()


async def work(url: str, worker: str) -> None:
    """Is a worker of the fleet until told to go, or killed."""
    store = await PostgresStore.open(url, worker=worker, notify=False)
    say(store.epoch)
    await asyncio.to_thread(sys.stdin.readline)
    await store.close()


WHAT = {
    "work": work,
    "own": own,
    "own_and_fork": own_and_fork,
    "own_and_write": own_and_write,
    "open_and_close": open_and_close,
    "write": write,
    "fill": fill,
    "attempt": attempt,
    "read": read,
}

if __name__ == "__main__":
    asyncio.run(WHAT[sys.argv[1]](*sys.argv[2:]))
