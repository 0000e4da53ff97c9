"""The shared store: one PostgreSQL database, any number of workers.

Everything that only PostgreSQL understands (its settings, its error codes, bulk writes, notifications) is here.
"""

from ropewalk.store.postgres.reader import PostgresReader
from ropewalk.store.postgres.store import PostgresStore
from ropewalk.store.postgres.transaction import PostgresTransaction

__all__ = ["PostgresReader", "PostgresStore", "PostgresTransaction"]
