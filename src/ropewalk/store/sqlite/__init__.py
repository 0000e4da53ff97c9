"""The embedded store: one SQLite file, one owning process, any number of readers.

Everything that only SQLite understands (pragmas, the lock file, its error codes) is in this package.
"""

from ropewalk.store.sqlite.clock_reset import reset_clock
from ropewalk.store.sqlite.guard import guarded
from ropewalk.store.sqlite.ownership import OwnerInfo, owner_info
from ropewalk.store.sqlite.reader import SqliteReader
from ropewalk.store.sqlite.store import SqliteStore
from ropewalk.store.sqlite.transaction import SqliteTransaction

__all__ = ["OwnerInfo", "SqliteReader", "SqliteStore", "SqliteTransaction", "guarded", "owner_info", "reset_clock"]
