"""A server that is too old is refused at the door, with the version it has and the one that is needed."""

import pytest

from ropewalk.store.errors import IncompatibleStore
from ropewalk.store.postgres import PostgresReader, PostgresStore
from tests.store.wires import a_past


@pytest.mark.parametrize("opening", [PostgresStore.open, PostgresReader.open])
@pytest.mark.parametrize(
    ("version", "unknown"),
    [
        ("11.22 (Debian 11.22-1.pgdg120+1)", "plan_cache_mode"),
        ("10.23", "jit"),
        ("9.6.24", "jit"),
        ("11.22", "a setting of another program"),
    ],
)
async def test_a_server_that_is_too_old_is_refused_with_both_versions(
    database: str, opening, version: str, unknown: str
):
    async with a_past(database, version, unknown) as old:
        with pytest.raises(IncompatibleStore) as refusal:
            await opening(old)

    found = version.partition(" ")[0]
    assert str(refusal.value).endswith(f" is of PostgreSQL {found}, and 12 or newer is needed")


@pytest.mark.parametrize("version", ["12.22", "13beta1", "19devel"])
async def test_a_server_that_is_new_enough_is_used(database: str, version: str):
    async with a_past(database, version, "a setting of another program") as server:
        store = await PostgresStore.open(server)
        await store.close()

    assert store.epoch == 1
