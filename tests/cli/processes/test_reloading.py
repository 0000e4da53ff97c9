"""`--reload`: a server or a worker takes up what was written into the files of its node types."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.servers import UpServer, up
from tests.cli.conftest import Invoke, Start, code_of, open_gate, told

NODES = """
import asyncio
from pathlib import Path

from ropewalk import NodeContext, node
from helping import WORD

@node
def say() -> str:
    return WORD + "{word}"

@node
async def held(context: NodeContext) -> str:
    context.log("holding")
    while not Path("gate").exists():
        await asyncio.sleep(0.01)
    return "{word}"
"""
SAY = {"ropewalk": 1, "name": "say", "nodes": [{"id": "a", "type": "say"}], "output": "{{ nodes.a.output }}"}
HELD = {"ropewalk": 1, "name": "held", "nodes": [{"id": "a", "type": "held"}], "output": "{{ nodes.a.output }}"}
EXECUTIONS = "/workflow/executions"


def write(word: str, helping: str = "", folder: str = ".") -> None:
    (Path(folder) / "mine.py").write_text(NODES.replace("{word}", word), encoding="utf-8")
    if helping or not Path("helping.py").exists():
        Path("helping.py").write_text(f"WORD = '{helping}'\n", encoding="utf-8")


def ready(server: UpServer) -> str:
    """The address the server says next."""
    return str(heard(server, "url")["url"])


def heard(server: UpServer, name: str, word: str = "") -> dict[str, Any]:
    """The next line of the server that has this field, and this word in it."""
    assert server.process.stdout is not None
    for line in server.process.stdout:
        said: dict[str, Any] = json.loads(line)
        if word in str(said.get(name, "")) and name in said:
            return said
    raise AssertionError("the server has ended")


def started(server: UpServer, document: dict[str, Any]) -> str:
    # The second time the server says that it has a workflow of this name.
    server.ask("POST", "/workflow/definitions?publish=true", json=document)
    body = {"workflowDefinitionId": document["name"]}
    return str(server.ask("POST", f"{EXECUTIONS}/start", json=body).json()["executionId"])


def ended(server: UpServer, execution: str) -> dict[str, Any]:
    found: dict[str, Any] = server.ask("GET", f"{EXECUTIONS}/{execution}?wait=30s").json()
    return found


def said(server: UpServer) -> Any:
    return ended(server, started(server, SAY))["output"]


def test_a_server_takes_up_what_was_written_and_keeps_its_address(project: Path):
    write("one")
    with up(project, "--reload", "--nodes", "mine.py", "--new-token") as server:
        before = said(server)
        write("one", helping="by and by ")
        again = heard(server, "url")

        assert (before, said(server)) == ("one", "by and by one")
        assert (again["url"], again["token"]) == (server.url, None)
        assert server.terminate() == 0


def test_what_runs_when_a_file_changes_finishes_first(project: Path):
    write("old")
    with up(project, "--reload", "--nodes", "mine.py") as server:
        execution = started(server, HELD)
        heard(server, "message", "holding")
        write("new")
        heard(server, "message", "mine.py changed")
        open_gate("gate")
        ready(server)
        found = ended(server, execution)
        runs = server.ask("GET", f"{EXECUTIONS}/{execution}/runs").json()["items"]

    assert (found["state"], found["output"], len(runs)) == ("SUCCESS", "old", 1)


def test_a_file_that_cannot_be_imported_is_told_and_what_was_there_goes_on(project: Path):
    write("one")
    with up(project, "--reload", "--nodes", "mine.py") as server:
        Path("mine.py").write_text("def torn(:\n", encoding="utf-8")
        told_of = heard(server, "message", "cannot be imported")["message"]
        between = said(server)
        write("two")
        ready(server)

        assert (between, said(server)) == ("one", "two")
        assert "mine.py" in told_of


def test_a_worker_takes_up_what_was_written(database: str, project: Path, start: Start, invoke: Invoke):
    Path("parcels").mkdir()
    write("one", folder="parcels")
    worker = start("worker", "--reload", "--nodes", "parcels.mine", "--db", database)
    told(worker, "has joined")
    write("two", folder="parcels")
    told(worker, "has joined")
    Path("say.json").write_text(json.dumps(SAY), encoding="utf-8")

    invoke("run", "say.json", "--detach", "--db", database, "--nodes", "parcels/mine.py")
    invoke("executions", "events", "last", "--follow", "--db", database)
    shown = json.loads(invoke("executions", "show", "last", "--json", "--db", database).stdout)
    worker.terminate()

    assert shown["output"] == "two"
    assert code_of(worker) == 0


def test_a_signal_that_comes_while_a_server_drains_for_a_new_start_ends_it(project: Path):
    write("old")
    with up(project, "--reload", "--nodes", "mine.py") as server:
        started(server, HELD)
        heard(server, "message", "holding")
        write("new")
        heard(server, "message", "mine.py changed")
        server.process.terminate()
        open_gate("gate")

        assert code_of(server.process) == 0
        assert '"url"' not in server.rest()


@pytest.mark.parametrize("command", [("up",), ("worker", "--db", "postgresql://nobody@localhost/nothing")])
def test_there_has_to_be_something_to_watch(command: tuple[str, ...], project: Path, invoke: Invoke):
    (project / "ropewalk.toml").unlink()

    result = invoke(*command, "--reload")

    assert (result.exit_code, "--reload" in result.stderr, "--nodes" in result.stderr) == (2, True, True)
