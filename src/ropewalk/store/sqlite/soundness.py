"""Whether a store may be written: what reading and writing it have shown, and whether its files are at their path."""

import logging
import os
import time
from typing import Final

from ropewalk.core.errors import RopewalkError
from ropewalk.store.errors import StoreDamaged, StoreReplaced, StoreUnavailable
from ropewalk.store.sqlite.files import Files, are_at

RECENTLY: Final = 10.0
"""For so long (s) a store that could not be read counts as one that cannot be."""

_log = logging.getLogger("ropewalk.store")


class Soundness:
    """What is known against the store of this process."""

    def __init__(self, path: str) -> None:
        self.stopped: StoreUnavailable | None = None
        """Why it is not written any more, if it is not."""
        self._path = path
        # Not what a link leads to: the link may be made to lead to another file.
        self._file = os.path.abspath(path)
        self._log_file = f"{os.path.realpath(path)}-wal"
        self._files: Files | None = None
        self._trouble: tuple[float, RopewalkError] | None = None

    def watch(self) -> Files:
        """Those that are at the path now are the files of this process."""
        self._files = Files.at(self._file)
        if self._files is None:
            raise StoreReplaced(f"{self._path} was moved or removed while it was being opened: try again")
        return self._files

    def is_sound(self) -> bool:
        """Whether nothing is known against it."""
        return self.stopped is None and (self._files is None or are_at(self._file, self._log_file, self._files))

    def require_usable(self) -> None:
        """Raises why it is not written any more."""
        if self.stopped is not None:
            raise type(self.stopped)(str(self.stopped))

    def require_files(self) -> None:
        """Raises StoreReplaced, for good, if other files are at the path, or none."""
        if self._files is not None and not are_at(self._file, self._log_file, self._files):
            self.stop(
                StoreReplaced(
                    f"{self._path} or its log was moved, removed or replaced while this process had it open: this "
                    "process writes no more and ends; start it again on the file that is to be used"
                )
            )
            self.require_usable()

    def require_read(self) -> None:
        """Raises what reading failed of lately."""
        if self._trouble is not None and time.monotonic() - self._trouble[0] < RECENTLY:
            raise type(self._trouble[1])(str(self._trouble[1]))

    def note_reading(self, trouble: RopewalkError) -> None:
        """The store could not be read."""
        if isinstance(trouble, StoreUnavailable):
            self._trouble = time.monotonic(), trouble
        self.note_damage(trouble)

    def note_damage(self, trouble: RopewalkError) -> None:
        """A store in which damage was found is not written any more."""
        if isinstance(trouble, StoreDamaged):
            self.stop(trouble)

    def note_failed_sync(self) -> None:
        """Only recovery, when the store is opened again, tells what is on the disk."""
        self.stop(
            StoreUnavailable(
                f"{self._path} is not written any more, since a sync of its disk failed and what is on it is unsure: "
                "see to the disk, then open it again"
            )
        )

    def stop(self, why: StoreUnavailable) -> None:
        """It is not written any more; the first reason is the one that is told."""
        if self.stopped is None:
            self.stopped = why
            _log.critical("%s", why)
