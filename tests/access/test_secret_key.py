"""What is in the database does not suffice to sign: the secret key is elsewhere, for its owner alone."""

import logging
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from ropewalk.access.secret_key import SecretKey, from_file, from_file_or_random, signing_key
from ropewalk.api.shapes.cursors import Cursors
from ropewalk.api.shapes.problems import Refused
from ropewalk.core.errors import InvalidInput
from ropewalk.store import secrets as kept
from ropewalk.store.sqlite import SqliteStore
from ropewalk.wiring import Settings, open_backend

TEXT = "0123456789abcdef0123456789abcdef"


def values(db: str) -> list[str]:
    """Everything in the table that servers agree by."""
    with sqlite3.connect(db) as connection:
        return [value for (value,) in connection.execute("select value from secret")]


def is_taken(cursors: Cursors, cursor: str) -> bool:
    try:
        cursors.read("list", cursor)
    except Refused:
        return False
    return True


async def test_nothing_in_the_database_signs_what_a_server_takes(tmp_path: Path):
    db = str(tmp_path / "a.db")
    async with open_backend(Settings(db=db)) as backend:
        forged = [Cursors(value).write("list", "place") for value in values(db)]
        taken = [is_taken(backend.cursors, cursor) for cursor in forged]

    assert len(taken) >= 2
    assert not any(taken)


async def test_no_file_of_the_store_but_its_key_file_has_the_key_in_it(tmp_path: Path):
    db = str(tmp_path / "a.db")
    async with open_backend(Settings(db=db)) as backend:
        key = (tmp_path / "a.db.key").read_bytes().strip()
        signs = backend.cursors._keys[0]
        files = {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}

    assert [name for name, content in files.items() if key in content] == ["a.db.key"]
    assert [
        name for name, content in files.items() if signs in content or bytes.fromhex(signs.decode()) in content
    ] == []


async def test_a_key_that_lay_in_the_database_in_plain_is_gone_and_signs_nothing(tmp_path: Path):
    db = str(tmp_path / "a.db")
    store = await SqliteStore.open(db)
    async with store.transaction() as tx:
        await kept.keep(tx, "cursors", "what an older server signed with")
    await store.close()

    async with open_backend(Settings(db=db)) as backend:
        taken = is_taken(backend.cursors, Cursors("what an older server signed with").write("list", 1))

    assert not taken
    assert "what an older server signed with" not in values(db)


async def test_a_server_that_starts_again_takes_the_cursors_it_made_before(tmp_path: Path):
    settings = Settings(db=str(tmp_path / "a.db"))
    async with open_backend(settings) as backend:
        cursor = backend.cursors.write("list", "place")
    async with open_backend(settings) as backend:
        assert backend.cursors.read("list", cursor) == "place"


async def test_servers_of_one_postgresql_agree_by_the_key_of_the_environment_or_by_the_users_file(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for settings in (Settings(db=database), Settings(db=database, key=TEXT)):
        async with open_backend(settings) as one, open_backend(settings) as other:
            assert other.cursors.read("list", one.cursors.write("list", "place")) == "place"

    assert stat.S_IMODE((tmp_path / "ropewalk" / "key").stat().st_mode) == 0o600
    assert caplog.text.count("had another secret key") == 1


async def test_two_stores_with_the_same_key_sign_differently(tmp_path: Path):
    stores = [await SqliteStore.open(str(tmp_path / name)) for name in ("a.db", "b.db")]
    keys = {await signing_key(store, SecretKey(TEXT)) for store in stores}
    for store in stores:
        await store.close()

    assert len(keys) == 2


def test_a_key_file_is_made_once_for_its_owner_alone(tmp_path: Path):
    path = str(tmp_path / "folder" / "key")
    before = os.umask(0)
    try:
        first, second = from_file(path), from_file(path)
    finally:
        os.umask(before)

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "folder").st_mode) == 0o700
    assert first.derived("x", "salt") == second.derived("x", "salt")


def test_the_text_of_the_file_and_the_same_in_the_environment_are_one_key(tmp_path: Path):
    (tmp_path / "key").write_text(f"{TEXT}\n")
    (tmp_path / "key").chmod(0o600)

    assert from_file(str(tmp_path / "key")).derived("x", "y") == SecretKey(TEXT).derived("x", "y")


def test_a_key_file_that_others_could_read_is_closed_to_them(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "key").write_text(TEXT)
    (tmp_path / "key").chmod(0o644)

    with caplog.at_level(logging.WARNING):
        from_file(str(tmp_path / "key"))

    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert "other users could read" in caplog.text


@pytest.mark.parametrize("text", ["", "short", "x" * 2_000])
def test_a_key_that_is_too_short_or_too_long_is_refused_with_what_makes_a_good_one(tmp_path: Path, text: str):
    (tmp_path / "key").write_text(text)

    with pytest.raises(InvalidInput, match="32 to 1,024 characters"):
        SecretKey(text)
    with pytest.raises(InvalidInput, match="key_file"):
        from_file(str(tmp_path / "key"))


def test_where_no_file_can_be_made_the_key_is_of_this_process_alone_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file" / "key")

    with caplog.at_level(logging.WARNING):
        first, second = from_file_or_random(path), from_file_or_random(path)

    assert first.derived("x", "y") != second.derived("x", "y")
    assert "good for this process alone" in caplog.text
    with pytest.raises(InvalidInput, match="key_file"):
        from_file(path)
