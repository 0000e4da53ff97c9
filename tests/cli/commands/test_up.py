"""`ropewalk up` as people start and stop it."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ropewalk.cli.backend.project import Project
from ropewalk.cli.processes import worker_processes
from ropewalk.cli.views.console import console
from ropewalk.cli.views.progress import View
from ropewalk.configuration import resolve
from tests.api.servers import PATIENCE, UpServer, up
from tests.cli.conftest import Invoke, Start, code_of, open_gate
from tests.polling import Overdue, blocking_until, until
from tests.postgres import ask

ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}
LOOKS = 2_000
STREAM = "/api/v1/workspaces/default/stream"


def first_lines(process: "subprocess.Popen[str]", count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def test_the_first_start_prints_a_token_that_opens_and_the_next_ones_do_not(tmp_path: Path):
    with up(tmp_path) as server:
        token = server.token
        first = server.ask("GET", "/workflow/executions")
        code = server.terminate()
    with up(tmp_path) as again:
        second = again.ask("GET", "/workflow/executions", token)
        stranger = again.ask("GET", "/workflow/executions", "rw_x_y")

    assert (first.status_code, second.status_code, stranger.status_code) == (200, 200, 401)
    assert again.token is None
    assert code == 0


def test_the_owner_of_a_store_who_lost_the_token_gets_another(tmp_path: Path):
    with up(tmp_path) as server:
        first = server.token
        server.terminate()
    with up(tmp_path, "--new-token") as again:
        answers = [again.ask("GET", "/workflow/executions", token).status_code for token in (first, again.token)]

    assert again.token not in (None, first)
    assert answers == [200, 200]


def test_the_limits_that_are_set_hold(tmp_path: Path):
    limits = "[streams]\nper_actor = 1\n[access]\nfailures_per_minute = 2\n"
    (tmp_path / "ropewalk.toml").write_text(limits, encoding="utf-8")
    with up(tmp_path) as server:
        with httpx2.stream("GET", f"{server.url}{STREAM}", headers=bearer(server), timeout=PATIENCE) as first:
            second = server.ask("GET", "/workspaces/default/stream")
        guesses = [server.ask("GET", "/me", "rw_x_y").status_code for _ in range(3)]

    assert (first.status_code, second.status_code) == (200, 429)
    assert "1 streams are open for you" in second.json()["detail"]
    assert guesses == [401, 401, 429]


def bearer(server: UpServer) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}"}


def test_people_are_told_the_address_and_the_token(start: Start):
    server = start("up", "--port", "0")

    ready, token = first_lines(server, 2)

    server.send_signal(signal.SIGINT)
    assert "is ready at http://127.0.0.1:" in ready
    assert token.startswith("Admin token, shown this once: rw_")
    assert code_of(server) == 0


def test_a_port_that_is_taken_is_said_and_nothing_is_made(tmp_path: Path, start: Start):
    with up(tmp_path, "--db", "one.db") as server:
        second = start("up", "--port", str(server.port), "--db", "two.db")
        _, said = second.communicate(timeout=PATIENCE)

    assert second.returncode == 2
    assert f"port {server.port} of 127.0.0.1 is taken" in said
    assert not (tmp_path / "two.db").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_let_in_only_by_explicit_word(invoke: Invoke, host: str):
    result = invoke("up", "--host", host)

    assert result.exit_code == 2
    assert "say --allow-remote if that is meant" in result.stderr


def test_a_file_has_no_further_workers(invoke: Invoke):
    result = invoke("up", "--workers", "2")

    assert result.exit_code == 2
    assert "--workers needs PostgreSQL" in result.stderr


def test_a_server_that_does_not_dispatch_only_accepts(tmp_path: Path, answer: Any):
    with up(tmp_path, "--no-dispatch") as server:
        workflow = server.ask("POST", "/workflow/definitions?publish=true", json=ONE).json()["id"]
        accepted = server.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})
        server.terminate()
        before = answer("executions", "ls")[0]["state"]
        answer("resume")

    assert (accepted.status_code, before) == (202, "PENDING")
    assert answer("executions", "ls")[0]["state"] == "SUCCESS"


def children(server: UpServer) -> set[int]:
    listed = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return set(map(int, listed.split()))


async def joined(database: str, pids: set[int], gone: set[int] = frozenset()) -> set[int]:  # type: ignore[assignment]
    """The processes that work on a database, as soon as there are so many others than those gone."""
    for _ in range(LOOKS):
        rows = await ask(database, "select pid from worker where heartbeat_at > 0")
        if len(found := {int(row[0]) for row in rows} - gone) >= len(pids):
            return found
    raise AssertionError("the workers do not join")


async def test_workers_are_replaced_when_they_die_and_leave_with_the_server(database: str, tmp_path: Path):
    with up(tmp_path, "--workers", "2", "--db", database) as server:
        found = await joined(database, {1, 2, 3})
        first, second = children(server)
        os.kill(first, signal.SIGKILL)
        again = await joined(database, {1, 2, 3}, {first})
        others = children(server)
        server.kill()
        told = said_by(server)

    assert found == {server.process.pid, first, second}
    assert again == {server.process.pid} | others
    # A worker that loses its server drains and signs off.
    assert all([await signed_off(database, each) for each in others])
    assert f"a worker process {first} was ended by SIGKILL; the next one starts in 0.5 s" in told


def said_by(server: UpServer) -> list[str]:
    """What a server that has ended, and its workers, have said."""
    assert server.process.stdout is not None
    return [str(json.loads(line).get("message")) for line in server.process.stdout]


def state_of(server: UpServer, execution: str, *wanted: str) -> str:
    """The state of the execution, as soon as it is a wanted one; the server answers all the while."""

    def reached() -> str | None:
        assert httpx2.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200
        state = str(server.ask("GET", f"/workflow/executions/{execution}").json()["state"])
        return state if state in wanted else None

    return str(blocking_until(reached, f"the execution is {' or '.join(wanted)}"))


def started(server: UpServer, *nodes: dict[str, Any]) -> str:
    document = {"ropewalk": 1, "name": "started", "nodes": list(nodes)}
    workflow = server.ask("POST", "/workflow/definitions?publish=true", json=document).json()["id"]
    answer = server.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})
    return str(answer.json()["executionId"])


async def test_a_node_that_ends_its_process_ends_no_server_with_several(database: str, tmp_path: Path):
    with up(tmp_path, "--workers", "2", "--db", database) as server:
        await joined(database, {1, 2, 3})
        poison = {"id": "a", "type": "crash", "retry": {"maxAttempts": 2}}
        ended = state_of(server, started(server, poison), "FAILED", "SUCCESS")
        letters = server.ask("GET", "/workflow/dead-letters").json()["items"]
        code = server.terminate()
        told = said_by(server)

    assert (ended, [each["reason"] for each in letters]) == ("FAILED", ["worker lost"])
    assert code == 0
    assert sum("was ended by SIGSEGV" in each for each in told) == 2


async def test_a_worker_whose_loop_is_busy_does_not_outlive_its_server(database: str, tmp_path: Path):
    settings = tmp_path / "ropewalk.toml"
    settings.write_text("drain = 0.1\n" + settings.read_text(encoding="utf-8"), encoding="utf-8")
    with up(tmp_path, "--workers", "2", "--db", database) as server:
        await joined(database, {1, 2, 3})
        workers = children(server)
        started(server, {"id": "a", "type": "spin"})
        await until((tmp_path / "spinning").exists, "a worker is busy")
        server.kill()

        await until(lambda: not any(map(threads, workers)), "the workers have ended")


async def signed_off(database: str, pid: int) -> bool:
    """Whether a worker has left in good order, as soon as it has."""
    left = "select 1 from worker where pid = $1 and heartbeat_at = 0"
    return bool(await until(lambda: ask(database, left, pid), f"process {pid} signs off"))


async def owner_among(database: str, pids: set[int]) -> int:
    """The one of these processes whose worker has something in hand."""

    async def found() -> int | None:
        owned = {pid: await ask(database, "select 1 from live where owner like $1", f"%-{pid}-%") for pid in pids}
        return next((pid for pid, rows in owned.items() if rows), None)

    return int(await until(found, "a worker takes something"))


def threads(pid: int) -> int:
    """How many it has; none once it is dead."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return 0


async def freeze(server: UpServer, database: str) -> None:
    """Stop the server where it has no transaction open: the locks of an open one would stop its workers too."""
    inside = "select 1 from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"

    async def is_outside() -> bool:
        server.process.send_signal(signal.SIGSTOP)
        for _ in range(20):
            if not await ask(database, inside):
                return True
        server.process.send_signal(signal.SIGCONT)
        return False

    await until(is_outside, "the server is stopped outside a transaction")


async def test_a_worker_that_drains_goes_on_draining_when_its_server_ends(database: str, tmp_path: Path, answer: Any):
    with up(tmp_path, "--workers", "2", "--db", database) as server:
        await joined(database, {1, 2, 3})
        workers = children(server)
        await freeze(server, database)
        await asyncio.to_thread(answer, "run", "held.yaml", "--detach", "--db", database)
        worker = await owner_among(database, workers)
        # As a service manager does that signals every process of a unit.
        for each in workers:
            os.kill(each, signal.SIGTERM)
        before = threads(worker)
        server.kill()
        with suppress(Overdue):  # others may begin meanwhile, and its time to drain is short
            await until(lambda: threads(worker) < before, "the thread that heeds the server has heard", 1)
        open_gate("first.gate")
        left = await signed_off(database, worker)
    shown = await asyncio.to_thread(answer, "executions", "show", "last", "--db", database)

    assert [(run["node"], run["attempt"], run["state"]) for run in shown["runs"]] == [("first", 1, "SUCCESS")]
    assert left


def test_a_further_worker_that_cannot_begin_ends_in_good_order(project: Path):
    command = [
        sys.executable,
        "-m",
        "ropewalk.cli.processes.worker_processes",
        "worker",
        "--db",
        "postgresql://nobody@127.0.0.1:1/none",
    ]
    with subprocess.Popen(command, cwd=project, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        said = worker.stderr.read()
        code = code_of(worker)

    assert "cannot be reached" in said
    assert (code, "Fatal" in said) == (4, False)


async def test_a_further_worker_that_cannot_be_started_is_told_of_and_tried_again(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    said: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(worker_processes, "FIRST_PAUSE", 0.01)
    project = Project(database, (), is_json=False, configuration=resolve({"db": database}, {}, folder=None))
    with monkeypatch.context() as upgrading:
        # As while everything is being installed anew.
        upgrading.setattr(sys, "executable", "/nowhere/python")
        working = worker_processes.running_workers(project, 1, Heard(said))
        async with asyncio.timeout(PATIENCE), working:
            told = await said.get()
            upgrading.undo()
            found = await joined(database, {1})

    assert "cannot be started (" in told
    assert len(found) == 1


class Heard(View):
    """Keeps what is said."""

    def __init__(self, said: "asyncio.Queue[str]") -> None:
        super().__init__(console(is_error=True))
        self._said = said

    def say(self, line: str) -> None:
        self._said.put_nowait(line)


def test_what_is_configured_holds_for_the_server(tmp_path: Path):
    (tmp_path / "ropewalk.toml").write_text('db = "jobs.db"\n[server]\nport = 0\n', encoding="utf-8")
    command = ("--config", str(tmp_path / "ropewalk.toml"), "--port", "0")

    with up(tmp_path, *command) as server:
        answer = httpx2.get(f"{server.url}/healthz")

    assert json.loads(answer.content) == {"status": "ok"}
    assert (tmp_path / "jobs.db").exists()


def test_a_server_does_not_end_with_the_reader_of_its_log(start: Start):
    server = start("up", "--port", "0", "--json")
    first_lines(server, 1)
    assert server.stdout is not None
    server.stdout.close()

    server.send_signal(signal.SIGTERM)

    assert code_of(server) == 0


SILENT_NAMES = """
import socket, threading
known = socket.getaddrinfo

def getaddrinfo(host, *arguments, **more):
    if str(host).endswith(".silent"):
        open("asked", "a").close()
        threading.Event().wait()
    return known(host, *arguments, **more)

socket.getaddrinfo = getaddrinfo
"""


def test_host_names_without_an_answer_keep_no_server_from_leaving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sitecustomize.py").write_text(SILENT_NAMES, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ROPEWALK_DRAIN", "0.1")
    nodes = [
        {"id": f"n{each}", "type": "http.request", "with": {"url": f"http://n{each}.silent/"}} for each in range(40)
    ]
    with up(tmp_path) as server:
        started(server, *nodes)
        blocking_until((tmp_path / "asked").exists, "a name is asked for")
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(20)

    assert code == 0


BROKEN = "ropewalk: 1\nname: broken\nnodes: [{ id: pay, type: charge, with: { card: expired } }]\n"


def test_all_that_a_server_says_is_json_if_its_log_is(project: Path, start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_TELEMETRY_LOG", "json")
    (project / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    server = start("up", "--port", "0", "--db", "there.db")
    assert server.stdout is not None
    ready = json.loads(server.stdout.readline())
    monkeypatch.setenv("ROPEWALK_TOKEN", ready["token"])

    ran = start("run", "broken.yaml", "--server", ready["url"])
    assert code_of(ran) == 1
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=20)

    lines = [json.loads(line) for line in (*out.splitlines(), *err.splitlines())]
    (failed,) = [line for line in lines if line["event"] == "execution.failed"]
    assert (failed["level"], failed["workflow"]) == ("error", "broken")
    assert {"draining; another signal leaves at once"} <= {line["event"] for line in lines}
    assert all(line["level"] and line["at"] for line in lines)


def test_why_a_server_cannot_begin_is_json_if_its_log_is(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_TELEMETRY_LOG", "json")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = start("up", "--port", str(taken.getsockname()[1]), "--db", "there.db")
        _, err = server.communicate(timeout=20)

    (line,) = map(json.loads, err.splitlines())
    assert line["level"] == "error"
    assert "is taken" in line["event"]
    assert server.returncode == 2
