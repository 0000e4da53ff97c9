"""The traceback of a user's node is shown where people look."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import NODES, Invoke
from tests.client.servers import Served

CODE = """
from ropewalk import node

@node
def shop_charge(order: str) -> str:
    return look_up(order)

def look_up(order: str) -> str:
    raise KeyError(order)
"""
HOSTILE = "x" * 2**20 + "\n2026-11-18 00:00:00  ERROR    engine │ forged\r\x1b[2J\x9b"
ONE = "nodes: [{ id: pay, type: shop_charge, with: { order: '{{ input }}' }, retry: { maxAttempts: 1 } }]"
MANY = "nodes: [{ id: pay, type: shop_charge, forEach: '{{ input }}', with: { order: x }, retry: { maxAttempts: 1 } }]"
LINE = "in look_up"


@pytest.fixture(autouse=True)
def nodes(project: Path) -> None:
    (project / "shop.py").write_text(CODE, encoding="utf-8")
    (project / "ropewalk.toml").write_text(f"nodes = [{json.dumps(NODES)}, 'shop.py']\n", encoding="utf-8")
    for name, document in (("one.yaml", ONE), ("many.yaml", MANY)):
        (project / name).write_text(f"ropewalk: 1\nname: {name[:-5]}\n{document}\n", encoding="utf-8")


def looks(invoke: Invoke, *more: str) -> dict[str, str]:
    """What every place says in which people look for a failure."""
    return {
        "executions show": invoke("executions", "show", "last", *more).stdout,
        "explain": invoke("explain", "last", *more).stdout,
        "dlq show": invoke("dlq", "show", "last", *more).stdout,
    }


def test_run_and_every_view_show_the_line_that_failed(invoke: Invoke):
    ran = invoke("run", "one.yaml", "--input", '"a7"')

    told = {"run": ran.stderr, **looks(invoke)}
    assert {name: LINE in text and "raise KeyError(order)" in text for name, text in told.items()} == dict.fromkeys(
        told, True
    )
    assert ran.stdout == ""


def test_programs_get_it_with_json(invoke: Invoke):
    ran = json.loads(invoke("run", "one.yaml", "--input", '"a7"', "--json").stdout)

    told: dict[str, Any] = {name: json.loads(text) for name, text in looks(invoke, "--json").items()}
    details = [
        ran["errorDetail"],
        ran["nodes"][0]["error"]["detail"],
        told["executions show"]["errorDetail"],
        told["explain"]["nodes"][0]["waitsFor"]["detail"],
        told["dlq show"]["errorDetail"],
    ]
    assert len(set(details)) == 1
    assert details[0].startswith("Traceback (most recent call last):\n")
    assert details[0].endswith("KeyError: 'a7'")


def test_a_map_shows_the_traceback_of_its_first_failed_item(invoke: Invoke):
    ran = invoke("run", "many.yaml", "--input", "[1, 2]")

    assert "item 0:" in ran.stderr
    assert {name: LINE in text for name, text in {"run": ran.stderr, **looks(invoke)}.items()} == {
        "run": True, "executions show": True, "explain": True, "dlq show": True,
    }  # fmt: skip


def test_a_server_shows_it_too(invoke: Invoke, server: Served, project: Path):
    (project / "paid2.yaml").write_text(
        "ropewalk: 1\nname: paid2\nnodes: [{ id: pay, type: charge, with: { card: expired } }]\n", encoding="utf-8"
    )
    ran = invoke("run", "paid2.yaml", "--server", server.url)

    told = {"run": ran.stderr, **looks(invoke, "--server", server.url)}
    assert {name: "node_types.py" in text for name, text in told.items()} == dict.fromkeys(told, True)


def test_a_megabyte_of_control_characters_is_bounded_and_harmless(invoke: Invoke, project: Path):
    (project / "hostile.json").write_text(json.dumps(HOSTILE), encoding="utf-8")

    ran = invoke("run", "one.yaml", "--input", "@hostile.json")

    told = {"run": ran.stderr, **looks(invoke)}
    inputs = len(HOSTILE) * 2
    assert {name: len(text) < 20_000 + (inputs if name != "explain" else 0) for name, text in told.items()} == (
        dict.fromkeys(told, True)
    )
    assert [name for name, text in told.items() if set(text) & set("\r\x1b\x9b\x00")] == []
    assert LINE in told["run"]
