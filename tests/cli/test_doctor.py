"""`ropewalk doctor`."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import Invoke, Start, told
from tests.store.wires import a_past

LOOKED_AT = {"Python", "SQLite", "disk space", "fsync", "owner", "store", "schema", "clock", "blobs", "node types"}


def known(found: list[dict[str, str]]) -> int:
    """How many node types the doctor has counted."""
    return next(int(finding["value"].split()[0]) for finding in found if finding["what"] == "node types")


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
    assert "is not an SQLite database" in result.stdout


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
