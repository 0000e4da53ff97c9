"""Under any umask, files of a store are for their owner alone: from the first byte, and also those found open."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropewalk.control.socket_path import socket_path
from ropewalk.store import private_files
from ropewalk.store.sqlite import SqliteStore
from ropewalk.wiring import Settings, open_service


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """What users other than the owner could do something with."""
    modes = {each: stat.S_IMODE(each.lstat().st_mode) for each in folder.rglob("*")}
    return {str(each.relative_to(folder)): oct(mode) for each, mode in modes.items() if mode & 0o077}


async def test_no_file_of_a_store_is_ever_open_to_others(tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    tmp_path.joinpath("run").mkdir(0o700)
    async with open_service(Settings(db=str(tmp_path / "a.db"))) as service:
        await service.store.blobs.put(b"x" * 100_000)
        names = {each.name for each in tmp_path.iterdir()}
        found = open_to_others(tmp_path)
        assert os.path.exists(socket_path(str(tmp_path / "a.db")))

    assert {"a.db", "a.db-wal", "a.db-shm", "a.db.lock", "a.db.blobs"} <= names
    assert (found, open_to_others(tmp_path)) == ({}, {})


async def test_the_database_is_private_before_anything_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[tuple[int, int]] = []
    create = private_files.create

    def spied(path: str) -> bool:
        made = create(path)
        found = os.stat(path)
        seen.append((found.st_size, stat.S_IMODE(found.st_mode)))
        return made

    monkeypatch.setattr(private_files, "create", spied)
    await (await SqliteStore.open(str(tmp_path / "a.db"))).close()

    assert seen == [(0, 0o600)]


async def test_files_that_were_open_to_others_are_closed_to_them_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "a.db"
    await (await SqliteStore.open(str(path))).close()
    blobs = tmp_path / "a.db.blobs"
    blobs.mkdir(0o755)
    opened = [path, tmp_path / "a.db.lock"]
    for each in opened:
        each.chmod(0o644)

    with caplog.at_level(logging.WARNING, "ropewalk.store"):
        await (await SqliteStore.open(str(path))).close()

    assert open_to_others(tmp_path) == {}
    assert all(f"other users could read {each};" in caplog.text for each in (*opened, blobs))


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path):
    path = str(tmp_path / "key")
    private_files.write(path, b"first")

    with pytest.raises(FileExistsError):
        private_files.write(path, b"second")

    assert Path(path).read_bytes() == b"first"
    assert [each.name for each in tmp_path.iterdir()] == ["key"]
