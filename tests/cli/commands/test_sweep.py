"""`ropewalk sweep` removes what is old, here or through the process that executes, and says how much."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from ropewalk.store.sqlite import SqliteStore
from tests.cli.conftest import Invoke, Start, code_of, open_gate, told

Answer = Callable[..., Any]
OLD = "00000000-000{}-7000-8000-000000000000"


@pytest.fixture
def kept(invoke: Invoke) -> str:
    """The id of an execution that has just ended, beside some of 1970."""
    execution = str(json.loads(invoke("run", "hello.yaml", "--json").stdout)["id"])
    asyncio.run(make_old(3))
    return execution


async def make_old(count: int) -> None:
    """A parent with a child, and others."""
    ids = [OLD.format(number) for number in range(count)]
    parents = [None, ids[0], *[None] * count]
    rows = [
        (each, "default", "w", 1, "PENDING", "MANUAL", parent, *[None] * 4, 1, 1, None)
        for each, parent in zip(ids, parents, strict=False)
    ]
    store = await SqliteStore.open("ropewalk.db")
    await store.write([("insert_execution", rows), ("set_execution", [("SUCCESS", 1, 2, None, each) for each in ids])])
    await store.close()


def ids(answer: Answer) -> list[str]:
    return [each["id"] for each in answer("executions", "ls")]


def test_what_is_old_goes_parents_too_and_what_is_not_stays(kept: str, answer: Answer):
    swept = answer("sweep")

    assert swept == {"executions": 3, "letters": 0, "keys": 0, "results": 0, "audit": 0, "blobs": 0}
    assert ids(answer) == [kept]


def test_a_dry_run_only_tells(kept: str, invoke: Invoke, answer: Answer):
    result = invoke("sweep", "--dry-run", "--older-than", "2h")

    assert (result.exit_code, result.stdout) == (0, "would go: 2 executions\n")
    assert len(ids(answer)) == 4


def test_there_may_be_nothing_to_do(invoke: Invoke):
    invoke("run", "hello.yaml")

    assert invoke("sweep").stdout == "removed: nothing\n"


def test_a_process_that_executes_is_asked_to_do_it(kept: str, answer: Answer, start: Start):
    owner = start("run", "held.yaml")
    told(owner, "holding")

    swept = answer("sweep")

    assert swept["executions"] == 3
    open_gate("first.gate")
    open_gate("second.gate")
    assert code_of(owner) == 0


@pytest.mark.parametrize("length", ["59m", "soon", "-1d"])
def test_a_time_that_makes_no_sense_is_refused(length: str, kept: str, invoke: Invoke, answer: Answer):
    result = invoke("sweep", f"--older-than={length}")

    assert (result.exit_code, "--older-than" in result.stderr) == (2, True)
    assert len(ids(answer)) == 4
