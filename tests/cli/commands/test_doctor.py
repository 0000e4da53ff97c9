"""`ropewalk doctor`."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

from tests.cli.conftest import Invoke, Start, told
from tests.store.samples import tell
from tests.store.wires import a_past

LOOKED_AT = {"Python", "SQLite", "disk space", "fsync", "owner", "store", "schema", "clock", "blobs", "node types"}


def known(found: list[dict[str, str]]) -> int:
    """How many node types the doctor has counted."""
    return next(int(finding["value"].split()[0]) for finding in found if finding["what"] == "node types")


def store_line(result: Result) -> str:
    """What the doctor says of the store, in one line however narrow the table is."""
    rows = re.split(r"\n(?=\S)", result.stdout)
    return next(" ".join(row.split()) for row in rows if row.split()[1] == "store")


def test_a_healthy_store_has_no_faults(invoke: Invoke, answer: Callable[..., Any]):
    invoke("run", "hello.yaml")
    found = answer("doctor")

    assert {finding["what"] for finding in found} >= LOOKED_AT
    assert [finding for finding in found if finding["health"] == "fault"] == []


def test_the_node_types_of_the_project_are_known(answer: Callable[..., Any], project: Path):
    with_them = known(answer("doctor"))
    (project / "ropewalk.toml").unlink()

    assert with_them > known(answer("doctor"))


def test_a_module_of_node_types_that_cannot_be_imported_is_a_fault(invoke: Invoke, project: Path):
    (project / "torn.py").write_text("import nosuchmodule\n", encoding="utf-8")

    result = invoke("doctor", "--nodes", "torn.py")

    assert result.exit_code == 1
    assert "torn.py cannot be imported" in result.stdout


def test_a_file_that_is_no_store_is_a_fault_with_a_remedy(invoke: Invoke):
    result = invoke("doctor", "--db", "hello.yaml")

    assert result.exit_code == 1
    assert store_line(result) == "fault store hello.yaml is not an SQLite database: choose another path"


def test_a_store_of_an_older_version_is_a_fault_with_the_one_remedy_that_helps(invoke: Invoke):
    invoke("run", "hello.yaml")
    tell("ropewalk.db", "delete from migration where number > 1")

    result = invoke("doctor")

    assert result.exit_code == 1
    assert re.fullmatch(
        r"fault store ropewalk\.db was made by an older Ropewalk \(schema 1, this one knows \d+\): "
        "the next `ropewalk run FILE` or `ropewalk up` brings it up to date",
        store_line(result),
    )


def test_an_empty_file_is_no_fault_and_stays_empty(invoke: Invoke):
    Path("empty.db").touch()

    result = invoke("doctor", "--db", "empty.db")

    assert (result.exit_code, Path("empty.db").stat().st_size) == (0, 0)
    assert store_line(result).startswith("ok store there is nothing of Ropewalk in empty.db yet")


def test_the_owner_is_named_with_its_socket(start: Start, answer: Callable[..., Any]):
    process = start("run", "asked.yaml")
    told(process, "waits for")

    (owner,) = [finding["value"] for finding in answer("doctor") if finding["what"] == "owner"]

    assert owner.startswith(f"process {process.pid} on ")
    assert "listening on /" in owner


def test_a_store_that_does_not_exist_yet_is_no_fault_and_is_not_made(invoke: Invoke):
    result = invoke("doctor")

    assert result.exit_code == 0
    assert not Path("ropewalk.db").exists()


def test_a_directory_that_does_not_exist_is_a_fault(invoke: Invoke):
    assert invoke("doctor", "--db", "nowhere/x.db").exit_code == 1


async def test_a_server_that_is_too_old_is_a_fault_with_both_versions(database: str, invoke: Invoke):
    async with a_past(database, "11.22", "plan_cache_mode") as old:
        result = await asyncio.to_thread(invoke, "doctor", "--db", old)

    assert result.exit_code == 1
    assert "is of PostgreSQL 11.22, and 12 or newer is needed" in " ".join(result.stdout.split())


def test_files_that_other_users_may_read_are_named(invoke: Invoke, answer: Callable[..., Any], project: Path):
    invoke("run", "hello.yaml")
    before = {finding["what"]: finding["health"] for finding in answer("doctor")}
    (project / "ropewalk.db").chmod(0o644)
    found = next(finding for finding in answer("doctor") if finding["what"] == "privacy")

    assert before["privacy"] == "ok"
    assert found["health"] == "warning"
    assert f"other users may read {project / 'ropewalk.db'}" in found["value"]


def test_a_store_that_is_ahead_of_the_clock_is_told_with_how_far_and_what_to_do(
    invoke: Invoke, answer: Callable[..., Any], project: Path
):
    invoke("run", "hello.yaml")
    tell(str(project / "ropewalk.db"), "update worker set heartbeat_at = heartbeat_at + 86400000000")
    found = next(finding for finding in answer("doctor") if finding["what"] == "clock")
    reset = invoke("reset-clock")
    after = next(finding for finding in answer("doctor") if finding["what"] == "clock")

    assert found["health"] == "warning"
    assert "the store is " in found["value"]
    assert "reset-clock" in found["remedy"]
    assert reset.output.startswith("the store was ")
    assert reset.output.endswith(" ahead; it goes by this machine's clock again\n")
    assert after["health"] == "ok"
    assert invoke("reset-clock").output.startswith("the store was not ahead")


def test_the_clock_of_a_shared_store_is_that_of_its_server(invoke: Invoke):
    result = invoke("reset-clock", "--db", "postgresql://nobody@127.0.0.1:1/nothing")

    assert (result.exit_code, "clock of its database server" in result.output) == (2, True)
