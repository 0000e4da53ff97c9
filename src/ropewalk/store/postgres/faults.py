"""What PostgreSQL and the network report, in our words; asked once, at the door."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import asyncpg

from ropewalk.core.errors import Conflict, RopewalkError
from ropewalk.store.errors import StoreBusy, StoreDamaged, StoreDefect, StoreFull, StoreUnavailable

LOST: Final = (
    OSError,  # TimeoutError among them
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,  # what the driver says when the server's last words found it idle
)
"""The connection is gone, or could not be made; whether the last statement was carried out is unknown."""
REPEATABLE: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""Nothing of the transaction was kept, for no fault of its own."""
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)

# The second is what its pool says of one that the server closed while it was lent and idle.
_CLOSED: Final = re.compile("closed|released back to the pool")
_TAKEN: Final = (asyncpg.UniqueViolationError, asyncpg.ForeignKeyViolationError)
_DAMAGED: Final = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)
_SLOW: Final = (asyncpg.QueryCanceledError, asyncpg.LockNotAvailableError)


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone. The driver has no code for one it knows to be closed, only words."""
    return isinstance(error, LOST) or (isinstance(error, asyncpg.InterfaceError) and bool(_CLOSED.search(str(error))))


def translated(error: Exception, place: str) -> RopewalkError:
    """What to raise instead of what the driver said. Never repeats a password: the driver does not either."""
    if isinstance(error, _TAKEN):
        return Conflict(str(error))
    if isinstance(error, _DAMAGED):
        return StoreDamaged(f"{place} is damaged ({error}): restore it from a backup")
    if isinstance(error, asyncpg.DiskFullError):
        return StoreFull(f"there is no room left for {place}: make some on its disk, then try again")
    if isinstance(error, _SLOW):
        return StoreBusy(f"{place} took too long ({error}): another transaction locks it, or it has too much to do")
    return _about_access(error, place) or _about_connection(error, place) or StoreDefect(str(error))


def _about_access(error: Exception, place: str) -> StoreUnavailable | None:
    match error:
        case asyncpg.InvalidCatalogNameError():
            return StoreUnavailable(f"there is no {place}: create it, or name another")
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return StoreUnavailable(f"{place} does not let this user in: check name, password and pg_hba.conf")
        case asyncpg.InsufficientPrivilegeError():
            return StoreUnavailable(f"{place} denies this user what is needed ({error}): grant it, or use another user")
        case asyncpg.InvalidSchemaNameError():
            return StoreUnavailable(f"{place} has no schema to work in ({error}): set the user's search_path")
        case asyncpg.ReadOnlySQLTransactionError():
            return StoreUnavailable(f"{place} can only be read here ({error})")
        case asyncpg.TooManyConnectionsError():
            return StoreUnavailable(f"{place} takes no more connections: raise max_connections, or use a pooler")
    return None


def _about_connection(error: Exception, place: str) -> StoreUnavailable | None:
    if isinstance(error, REPEATABLE):
        return StoreUnavailable(f"{place} had to undo this for the sake of another transaction: try again")
    if is_lost(error):
        reason = str(error).strip() or type(error).__name__
        return StoreUnavailable(f"{place} cannot be reached ({reason}): is the server up?")
    if isinstance(error, asyncpg.ClientConfigurationError):
        return StoreUnavailable(f"the address of {place} cannot be used: {error}")
    if isinstance(error, asyncpg.InsufficientResourcesError):
        return StoreUnavailable(f"{place} is short of something ({error}): see to the server, then try again")
    return None


@contextmanager
def at_the_door(place: str) -> Iterator[None]:
    """What the driver or the network raises inside leaves as one of our errors."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translated(error, place) from error
