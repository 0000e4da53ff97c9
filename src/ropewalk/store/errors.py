"""What can go wrong with a store, branched by what the caller can do about it."""

from ropewalk.core.errors import RopewalkError, Unavailable


class StoreUnavailable(Unavailable):
    """The store cannot be read or written now; the message names the path and the remedy."""


class StoreFull(StoreUnavailable):
    """There is no room left on the disk: make some, then try again. Nothing of the commit was kept."""


class StoreBusy(StoreUnavailable):
    """Another program keeps the database locked."""


class StoreInUse(StoreUnavailable):
    """Another process owns the store; only one may write."""


class NotADatabase(RopewalkError):
    """The file is something else; choose another path."""


class StoreCorrupted(RopewalkError):
    """Something in the store is damaged; restore it from a backup."""


class StoreDamaged(StoreCorrupted, StoreUnavailable):
    """The database itself is damaged, so nothing in it can be relied on: restore it from a backup."""


class StoreReplaced(StoreUnavailable):
    """Other files are at the path of the store than the ones this process has open; it writes no more."""


class NoStore(RopewalkError):
    """There is no store of Ropewalk yet; a command that only looks makes none, and the message names one that does."""


class IncompatibleStore(RopewalkError):
    """The store's schema is not the one this version knows."""


class StaleWriter(Unavailable):
    """Another worker has taken over from this one, which writes nothing more; try again: a worker of a fleet is back
    under another name in a moment, a file is in the hands of another process, which can be asked."""


class WentBack(StaleWriter):
    """The database has forgotten what it had committed for this worker: it was restored, or a replica that lagged
    behind took over. The worker comes back under another name; operators read docs/operations.md."""


class StoreDefect(RopewalkError):
    """A statement and what it was given do not fit: a mistake in Ropewalk, which its users cannot mend."""
