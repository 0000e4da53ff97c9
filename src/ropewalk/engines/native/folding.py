"""Executions as their logs leave them."""

from typing import Final

from ropewalk.core import log
from ropewalk.core.errors import NotFound, reading_of
from ropewalk.core.skeleton import skeleton
from ropewalk.engines.base import Version
from ropewalk.engines.native.live import Fold, Live, Written
from ropewalk.engines.native.record import recorded
from ropewalk.engines.versions import Versions
from ropewalk.store import files
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader
from ropewalk.store.naming import NAMES_FILE

MOST_FILES: Final = 100_000
"""So many files of an execution are counted."""


class Folding:
    """Reads logs and folds them."""

    def __init__(self, reader: Reader, versions: Versions) -> None:
        self._reader = reader
        self._versions = versions

    async def fold(self, execution: str) -> Live:
        """The execution as its log leaves it."""
        # Whose it is comes first: of one that is ours the log read afterwards is whole.
        written = await self._written(execution)
        with reading_of(execution):
            return await self.folded(execution, written, None)

    async def _written(self, execution: str) -> Written:
        found = await recorded(self._reader, [execution])
        if execution not in found:
            raise NotFound(f"there is no execution {execution}")
        return found[execution].written

    async def folded(self, execution: str, written: Written, entries: list[bytes] | None) -> Live:
        """The same with what the tables say; the log is read a few megabytes at a time if it is not given."""
        fold: Fold | None = None
        names_files = False
        pages = stored_log.pages(self._reader, execution)
        page = await pages.next() if entries is None else entries
        while page:
            for entry in page:
                _, events = log.decode(entry)
                if fold is None:
                    accepted = log.acceptance(events)
                    fold = Fold(await self._versions.followed(accepted), accepted)
                fold.add(events, len(entry))
                names_files = names_files or NAMES_FILE in entry
                written.seal = log.seal_of(entry)
            page = await pages.next() if entries is None else []
        if fold is None:
            log.acceptance(())
        assert fold is not None, "an empty log has no acceptance"
        if names_files or fold.has_large:
            about = (execution, fold.workspace, MOST_FILES)
            fold.add_files(await files.of_execution(self._reader, *about))
        return fold.done(written)

    async def bones(self, execution: str) -> Live:
        """An execution without its version: all of its log at once, since the log alone tells which nodes there are."""
        written = await self._written(execution)
        with reading_of(execution):
            entries = (await stored_log.whole(self._reader, [execution])).get(execution, [])
            events = list(log.decode_all(entries))
            accepted = log.acceptance(events)
            version = Version(accepted.workflow, accepted.version, accepted.hash, skeleton(accepted, events))
            fold = Fold(version, accepted)
            fold.add(events, sum(map(len, entries)))
            written.seal = log.seal_of(entries[-1])
            return fold.done(written)
