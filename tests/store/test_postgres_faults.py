"""What goes wrong with a database is said in our words: which one, what to do, and never the password."""

import asyncpg
import pytest

from ropewalk.core.errors import Conflict, RopewalkError
from ropewalk.store.errors import StoreBusy, StoreDamaged, StoreDefect, StoreFull, StoreUnavailable
from ropewalk.store.postgres import PostgresReader, PostgresStore
from ropewalk.store.postgres.faults import translated
from tests.postgres import PostgresServer

SECRET = "correct-horse"
pytestmark = pytest.mark.parametrize("opening", [PostgresStore.open, PostgresReader.open])


@pytest.fixture
async def locked(postgres: PostgresServer) -> None:
    """A user that needs a password, and may do nothing."""
    await postgres.ask(
        f"do $$ begin create role locked login password '{SECRET}'; exception when duplicate_object then null; end $$"
    )


async def refused(opening, url: str) -> str:
    with pytest.raises(StoreUnavailable) as refusal:
        await opening(url)
    message = str(refusal.value)
    assert SECRET not in message
    return message


async def test_a_database_that_is_not_there_is_named(postgres: PostgresServer, opening):
    message = await refused(opening, postgres.url("nowhere"))

    assert message == f"there is no database nowhere at 127.0.0.1:{postgres.port}: create it, or name another"


async def test_a_server_that_is_not_there_is_named(opening):
    message = await refused(opening, f"postgresql://ann:{SECRET}@127.0.0.1:1/shop")

    assert message.startswith("database shop at 127.0.0.1:1 cannot be reached (")


@pytest.mark.usefixtures("locked")
async def test_a_wrong_password_is_not_repeated(postgres: PostgresServer, opening):
    message = await refused(opening, postgres.url("postgres", user="locked", password=f"{SECRET}!"))

    assert "does not let this user in: check name, password" in message


@pytest.mark.usefixtures("locked")
async def test_a_user_without_rights_is_told_which(postgres: PostgresServer, opening):
    url = await postgres.create_database()
    message = await refused(opening, postgres.url(url.rpartition("/")[2], user="locked", password=SECRET))

    assert "denies this user what is needed (permission denied for" in message
    await postgres.drop_database(url)


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("mysql://ann@host/shop", "begins with postgresql://, this one with 'mysql'"),
        ("postgresql://[::1/shop", "cannot be read"),
        (f"postgresql://ann:{SECRET}@host:port/shop", "cannot be read"),
        (f"postgresql://ann:{SECRET}/{SECRET}@host/shop", "escaped as in %40"),
        (f"postgresql://ann:{SECRET}?{SECRET}@host/shop", "escaped as in %40"),
        (f"postgresql://ann:{SECRET}#{SECRET}@host/shop", "escaped as in %40"),
        ("", "begins with postgresql://"),
    ],
)
async def test_an_address_that_is_none_is_refused(url: str, advice: str, opening):
    assert advice in await refused(opening, url)


@pytest.mark.parametrize(
    ("error", "ours", "words"),
    [
        (asyncpg.UniqueViolationError("log_pkey"), Conflict, "log_pkey"),
        (asyncpg.ForeignKeyViolationError("fk"), Conflict, "fk"),
        (asyncpg.NotNullViolationError("column"), StoreDefect, "column"),
        (asyncpg.DiskFullError("no space"), StoreFull, "no room left for the shop"),
        (asyncpg.DataCorruptedError("page"), StoreDamaged, "restore it from a backup"),
        (asyncpg.QueryCanceledError("timeout"), StoreBusy, "took too long"),
        (asyncpg.LockNotAvailableError("lock"), StoreBusy, "took too long"),
        (asyncpg.SerializationError("concurrent"), StoreUnavailable, "try again"),
        (asyncpg.TooManyConnectionsError("sorry"), StoreUnavailable, "takes no more connections"),
        (asyncpg.OutOfMemoryError("memory"), StoreUnavailable, "short of something"),
        (asyncpg.ReadOnlySQLTransactionError("read-only"), StoreUnavailable, "can only be read"),
        (asyncpg.InvalidSchemaNameError("none"), StoreUnavailable, "search_path"),
        (asyncpg.UndefinedTableError("gone"), StoreDefect, "gone"),
        (TimeoutError(), StoreUnavailable, "cannot be reached (TimeoutError)"),
        (asyncpg.InterfaceError("connection is closed"), StoreUnavailable, "cannot be reached"),
        (asyncpg.InterfaceError("2 arguments"), StoreDefect, "2 arguments"),
    ],
)
def test_each_error_says_what_one_can_do(error: Exception, ours: type[RopewalkError], words: str, opening):
    found = translated(error, "the shop")

    assert type(found) is ours
    assert words in str(found)
