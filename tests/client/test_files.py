"""Files by both clients: brought, handed to a start, and taken back as they were."""

import asyncio
import random
from pathlib import Path

import pytest

from ropewalk.client import AsyncClient, Client
from ropewalk.core.errors import Invalid, InvalidInput, NotFound
from tests.client.servers import Served

CONTENT = random.Random(13).randbytes(1_200_000)
ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "orders.csv").write_bytes(CONTENT)
    return tmp_path / "orders.csv"


async def test_a_file_is_brought_and_taken_on_a_loop(client: AsyncClient, file: Path, tmp_path: Path):
    value = await client.upload(file)
    execution = await client.start(ONE, {"orders": value})
    await execution.result()

    saved = await client.download(execution.id, value, tmp_path / "back.csv")

    assert (value["$file"]["name"], value["$file"]["type"]) == ("orders.csv", "text/csv")
    assert [each async for each in client.files(execution.id)] == [value["$file"]]
    assert (saved, Path(saved).read_bytes() == CONTENT) == (str(tmp_path / "back.csv"), True)
    assert sorted(each.name for each in tmp_path.glob("*.part")) == []


async def test_a_file_is_brought_and_taken_by_a_thread(server: Served, file: Path, tmp_path: Path):
    def work() -> bytes:
        with Client(server.url, server.token) as client:
            value = client.upload(file, name="a.bin", type="application/x-thing")
            assert value["$file"]["type"] == "application/x-thing"
            execution = client.start(ONE, value)
            execution.result()
            return Path(client.download(execution.id, value["$file"]["hash"], tmp_path / "back")).read_bytes()

    assert await asyncio.to_thread(work) == CONTENT


async def test_what_is_not_there_is_not_saved(client: AsyncClient, file: Path, tmp_path: Path):
    execution = await client.start(ONE)

    with pytest.raises(NotFound):
        await client.download(execution.id, "0" * 64, tmp_path / "none")
    with pytest.raises(InvalidInput, match="is no file"):
        await client.download(execution.id, {"$file": {"name": "x"}})

    assert not (tmp_path / "none").exists()


async def test_a_name_that_a_workflow_has_chosen_leads_into_no_other_folder(
    client: AsyncClient, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    value = await client.upload(file)
    execution = await client.start(ONE, value)
    await execution.result()
    lying = {"$file": {**value["$file"], "name": "../../.ssh/authorized_keys"}}

    assert await client.download(execution.id, lying) == "authorized_keys"
    assert (tmp_path / "authorized_keys").read_bytes() == CONTENT


async def test_a_file_that_is_too_large_is_refused_in_the_words_of_the_server(
    client: AsyncClient, server: Served, file: Path
):
    server.backend.file_bytes = 1_000

    with pytest.raises(Invalid, match="1,000 bytes"):
        await client.upload(file)
