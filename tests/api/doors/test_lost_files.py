"""A server whose file was replaced or damaged acknowledges nothing, says why, and is not ready."""

import os
import sqlite3
from pathlib import Path

import httpx2
import pytest

from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.sqlite import soundness
from tests.api.doors.test_server_trouble import published, under_load
from tests.api.house import House
from tests.api.servers import PATIENCE, UpServer, up

DB = "ropewalk.db"


def log_of(folder: Path) -> str:
    return (folder / "up.log").read_text()


def backup(folder: Path) -> Path:
    """A copy made while the server lives."""
    with sqlite3.connect(folder / DB) as source, sqlite3.connect(folder / "backup.db") as target:
        source.backup(target)
        target.execute("pragma journal_mode = delete")
    return folder / "backup.db"


def known(folder: Path, name: str = DB) -> set[str]:
    with sqlite3.connect(folder / name) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        return {execution for (execution,) in connection.execute("select id from execution")}


async def test_a_server_whose_file_was_replaced_acknowledges_nothing_more_and_ends_with_an_error(tmp_path: Path):
    with up(tmp_path) as server:
        workflow = published(server)
        async with under_load(server, workflow) as load:
            await load.more(202, 20)
            copy = backup(tmp_path)
            await load.more(202, 20)
            (tmp_path / DB).rename(tmp_path / "old.db")
            copy.rename(tmp_path / DB)
            await load.more(503, 1)
            code = server.process.wait(PATIENCE)
        said = server.rest() + log_of(tmp_path)
    accepted, answers = set(load.accepted), load.answers

    with up(tmp_path) as server:
        assert server.ask("GET", "/workflow/executions?limit=1", token=None).status_code in (200, 401)
        restored = server.process.poll()
    (aside,) = tmp_path.glob(f"{DB}-wal.*")
    aside.rename(tmp_path / "old.db-wal")

    assert code == 4
    assert set(answers) <= {202, 503, "broken"}
    assert "was moved, removed or replaced while this process had it open" in said
    assert "Traceback" not in said
    assert restored is None
    assert known(tmp_path)
    # Every start that was acknowledged is in the file that was there when it was.
    assert accepted <= known(tmp_path, "old.db")


def test_a_server_with_nothing_to_do_notices_that_its_file_is_gone(tmp_path: Path):
    with up(tmp_path) as server:
        (tmp_path / DB).rename(tmp_path / "old.db")

        assert server.process.wait(PATIENCE) == 4


def test_a_server_is_not_started_on_a_damaged_file(tmp_path: Path):
    with up(tmp_path) as server:
        published(server)
        server.terminate()
    damage(tmp_path / DB, 16)

    with pytest.raises(AssertionError, match="ended before it was ready"), up(tmp_path):
        pass

    assert "is damaged" in log_of(tmp_path)
    assert "restore it from a backup" in log_of(tmp_path)


def damage(path: Path, first: int) -> None:
    """Everything from this page on is nonsense."""
    with path.open("r+b") as file:
        file.seek(4096 * first)
        file.write(os.urandom(path.stat().st_size - 4096 * first))


def test_a_server_whose_store_is_damaged_is_not_ready_and_says_why_in_one_line(tmp_path: Path):
    with up(tmp_path) as server:
        published(server)
        server.terminate()
    with up(tmp_path, "--new-token") as server:
        before = ready(server)
        damage(tmp_path / DB, 1)
        answers = [server.ask("GET", path) for path in READS for _ in range(5)]
        after = ready(server)
        start = server.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": "x" * 32})
        server.kill()
        said = server.rest() + log_of(tmp_path)

    assert (before, after) == (200, 503)
    assert {answer.status_code for answer in answers} <= {200, 503}
    damaged = [answer.json() for answer in answers if answer.status_code == 503]
    assert damaged
    assert all("restore it from a backup" in each["detail"] for each in damaged)
    assert start.status_code == 503
    assert "Traceback" not in said
    assert 1 <= said.count("is damaged") <= 3


READS = ("/workflow/executions", "/workflow/definitions", "/workflow/dead-letters", "/activity", "/breakers", "/keys")


def ready(server: UpServer) -> int:
    return httpx2.get(f"{server.url}/readyz", timeout=PATIENCE).status_code


async def test_a_store_that_could_not_be_read_a_moment_ago_is_not_ready(house: House, monkeypatch: pytest.MonkeyPatch):
    async with house.client(None) as client:
        house.service.store._reader.on_trouble(StoreUnavailable("the disk failed"))
        lately = await client.get("/readyz")
        monkeypatch.setattr(soundness, "RECENTLY", 0.0)
        later = await client.get("/readyz")

    assert (lately.status_code, lately.json()["detail"]) == (503, "the disk failed")
    assert later.status_code == 200
