"""Files over HTTP: brought in and taken out as streams, by those who may, as nothing a browser would show."""

import hashlib
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from ropewalk.access.rights import Role
from ropewalk.api.streaming import downloads
from tests.api.house import House
from tests.api.stories import EXECUTIONS, ONE, Town
from tests.engines.worlds import flow, node

FILES = "/workflow/files"
CONTENT = random.Random(11).randbytes(1_500_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


async def brought(house: House, content: bytes = CONTENT, name: str = "orders.csv", **more: str) -> dict[str, object]:
    answer = await house.ask("POST", FILES, content=content, params={"name": name}, headers=more)
    assert answer.status_code == 201, answer.text
    file: dict[str, object] = answer.json()["file"]
    return file


async def test_what_is_brought_is_a_value_and_can_be_taken_from_the_execution_that_names_it(town: Town):
    file = await brought(town, name='Bestellungen für "Mai".csv', **{"Content-Type": "text/csv"})
    execution = await town.run(flow(node("a")), {"orders": [file]})

    answer = await town.ask("GET", f"{EXECUTIONS}/{execution}/files/{DIGEST}")

    assert file == {
        "$file": {"hash": DIGEST, "size": len(CONTENT), "name": 'Bestellungen für "Mai".csv', "type": "text/csv"}
    }
    assert (answer.status_code, answer.content == CONTENT) == (200, True)
    wanted = ("content-type", "content-length", "content-disposition", "x-content-type-options")
    assert [answer.headers[name] for name in wanted] == [
        "application/octet-stream",
        str(len(CONTENT)),
        "attachment; filename=\"Bestellungen f_r _Mai_.csv\"; filename*=UTF-8''Bestellungen%20f%C3%BCr%20%22Mai%22.csv",
        "nosniff",
    ]
    assert answer.headers["content-security-policy"].startswith("sandbox")


async def test_the_files_of_an_execution_are_listed(town: Town):
    one, two = await brought(town), await brought(town, b"", "empty.txt")
    execution = await town.run(flow(node("a", "set", values={"x": "y" * 70_000, "file": "{{ input }}"})), one)
    other = await town.run(ONE, two)

    listed = (await town.get(f"{EXECUTIONS}/{execution}/files"))["items"]

    assert listed == [one["$file"]]
    assert (await town.get(f"{EXECUTIONS}/{other}/files"))["items"] == [two["$file"]]
    empty = await town.ask("GET", f"{EXECUTIONS}/{other}/files/{hashlib.sha256().hexdigest()}")
    assert (empty.status_code, empty.content) == (200, b"")


async def test_only_an_execution_that_names_a_file_gives_it_away(town: Town):
    file = await brought(town)
    named, other = await town.run(ONE, file), await town.run(ONE)

    assert (await town.ask("GET", f"{EXECUTIONS}/{named}/files/{DIGEST}")).status_code == 200
    assert (await town.ask("GET", f"{EXECUTIONS}/{other}/files/{DIGEST}")).status_code == 404
    assert (await town.ask("GET", f"{EXECUTIONS}/{named}/files/{'0' * 64}")).status_code == 404
    assert (await town.ask("GET", f"{EXECUTIONS}/{named}/files/..%2Fx")).status_code in (404, 422)


async def test_a_hash_alone_gives_nothing_of_another_workspace_away(town: Town):
    file = await brought(town)
    await town.workspace("theirs")
    execution = await town.run(ONE, file, "theirs")
    token = await town.key(Role.ADMIN, "theirs")

    answer = await town.ask("GET", f"{EXECUTIONS}/{execution}/files/{DIGEST}", token)

    assert answer.status_code == 404
    assert (await town.get(f"{EXECUTIONS}/{execution}/files", token))["items"] == []


async def test_a_caller_without_the_right_to_payloads_sees_no_file_and_no_name(town: Town):
    execution = await town.run(ONE, await brought(town, name="secret-name.csv"))
    viewer = await town.key(Role.VIEWER)

    for path in ("/files", f"/files/{DIGEST}"):
        assert (await town.ask("GET", f"{EXECUTIONS}/{execution}{path}", viewer)).status_code == 403
    for path in ("", "/events", "/nodes", "/runs"):
        assert "secret-name" not in (await town.ask("GET", f"{EXECUTIONS}/{execution}{path}", viewer)).text


async def test_what_is_too_large_is_refused_and_not_kept(house: House):
    house.backend.file_bytes = 1_000_000

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(100_000)

    said = await house.ask("POST", FILES, content=CONTENT)
    unsaid = await house.ask("POST", FILES, content=endless())

    assert (said.status_code, unsaid.status_code) == (413, 413)
    assert await house.backend.store.fetch("walk_blobs", "", 2**60, 10) == []


async def test_a_name_that_is_a_path_is_none(house: House):
    file = await brought(house, b"x", "../../etc/passwd\r\nX: y")

    assert file["$file"]["name"] == "passwdX: y"  # type: ignore[index]


async def test_one_caller_has_only_some_downloads_under_way(town: Town, monkeypatch: pytest.MonkeyPatch):
    execution = await town.run(ONE, await brought(town))
    monkeypatch.setattr(downloads, "PATIENCE", 0.01)
    subject = (await town.get("/me"))["subject"]
    async with AsyncExitStack() as under_way:
        for _ in range(8):
            await under_way.enter_async_context(town.backend.downloads.reserve(subject))
        answer = await town.ask("GET", f"{EXECUTIONS}/{execution}/files/{DIGEST}")

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
    assert (await town.ask("GET", f"{EXECUTIONS}/{execution}/files/{DIGEST}")).status_code == 200
