"""One transaction after another on the connection that writes, step by step.

A COMMIT that fails is rolled back, and that is definite: the next commit overwrites the part of the failed one that
reached the write-ahead log. The exception is a sync that failed: what is on the disk then is unknown, so the store
refuses to write until it is opened anew, and recovery finds out. A store in which damage was found, in reading or in
writing, is not written any more either, nor is one whose files are no longer at their path. That is asked after every
commit and before it is acknowledged.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from ropewalk.core.errors import RopewalkError
from ropewalk.store.access import Batch, Value
from ropewalk.store.errors import StaleWriter
from ropewalk.store.sqlite.bulk import Commits, Message, carry_out
from ropewalk.store.sqlite.connection import statements
from ropewalk.store.sqlite.faults import is_stale, is_unsure, translated
from ropewalk.store.sqlite.soundness import Soundness
from ropewalk.store.texts import normal, normal_rows

SLOW: Final = 5_000
"""A disk that takes longer over a commit (µs) is waited for by the thread, until it is faster again."""
MARK_EVERY: Final = 50_000
"""Store time is left in the database at most this often (µs), with a commit that happens anyway."""


class Writer:
    """Writes for one worker, under the epoch it was registered with."""

    def __init__(self, connection: sqlite3.Connection, path: str, worker: str, epoch: int, soundness: Soundness,
                 now: Callable[[], int], marked: int) -> None:  # fmt: skip
        """`marked` is the store time that the database knows already."""
        self.worker = worker
        self.stale_writes = 0
        # Whether the disk took long over the last commit: the loop does not wait for the next one.
        self.is_slow = False
        self._connection = connection
        self._path = path
        self._epoch = epoch
        self._soundness = soundness
        self._statements = statements()
        self._commits = Commits(connection, worker, epoch)
        self._time = now
        self._marked = self._now = marked

    def write(self, message: Message) -> None:
        """The whole batch as one transaction."""
        self._soundness.require_usable()
        try:
            self._now = self._time()
            if message.forms:
                self._write_at_once(message)
            else:
                self._write_row_by_row(message)
            self._soundness.require_files()
            self.is_slow = self._time() - self._now > SLOW
        except sqlite3.Error as error:
            raise self.ours(error) from error
        finally:
            self.undo()

    def _write_at_once(self, message: Message) -> None:
        mark = self._now if self._is_to_be_marked() else None
        self._commits.write(message, mark)
        self._marked = mark or self._marked

    def _write_row_by_row(self, batch: Batch) -> None:
        self.begin()
        for name, rows in batch:
            self._connection.executemany(self._statements[name], normal_rows(rows))
        self.commit()

    def begin(self) -> None:
        """Opens the transaction, and refuses to go on if another process has raised the epoch."""
        self._connection.execute("begin immediate")
        self._now = self._time()
        if not self._is_current():
            raise self._stale()

    def execute(self, name: str, arguments: Sequence[Value]) -> sqlite3.Cursor:
        """One statement of the open transaction, here and now."""
        try:
            return self._connection.execute(self._statements[name], normal(arguments))
        except sqlite3.Error as error:
            raise self.ours(error) from error

    def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """One statement of the open transaction for many rows."""
        try:
            carry_out(self._connection, name, self._statements[name], rows)
        except sqlite3.Error as error:
            raise self.ours(error) from error

    def commit(self) -> None:
        """Ends the open transaction: it is on the disk on return."""
        began = self._time()
        self._connection.execute("commit")
        self.is_slow = self._time() - began > SLOW
        if self._is_to_be_marked():
            self._marked = self._now

    def undo(self) -> None:
        """Rolls back what was not committed, if anything."""
        if self._connection.in_transaction:
            self._connection.execute("rollback")

    def ours(self, error: sqlite3.Error) -> RopewalkError:
        """The driver's error as one of Ropewalk's; after some of them nothing is written any more."""
        if is_stale(error):
            return self._stale()
        ours = translated(error, self._path, is_ours=True)
        self._soundness.note_damage(ours)
        if is_unsure(error):
            self._soundness.note_failed_sync()
        return ours

    def _stale(self) -> StaleWriter:
        self.stale_writes += 1
        return StaleWriter(taken_over(self._path))

    def _is_to_be_marked(self) -> bool:
        return self._now - self._marked >= MARK_EVERY

    def _is_current(self) -> bool:
        if not self._is_to_be_marked():
            asked = self._connection.execute(self._statements["check_epoch"], (self.worker, self._epoch))
            return asked.fetchone() is not None
        marked = self._connection.execute(self._statements["mark_time"], (self._now, self.worker, self._epoch))
        return marked.rowcount == 1


def taken_over(path: str) -> str:
    """What to tell a process that has lost its store to another."""
    return f"{path} was taken over by another process; this one writes no more"
