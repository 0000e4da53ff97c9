"""Workers on a real server, as processes of their own, and commands beside them."""

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from tests.cli.conftest import Invoke, Start, code_of, open_gate, told
from tests.postgres import PostgresServer, ask

Answer = Callable[..., Any]
Join = Callable[..., subprocess.Popen[str]]
LOOKS = 2_000


@pytest.fixture(autouse=True)
def url(database: str, project: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address that every command here uses; the server trusts every user, and so does not mind the password."""
    address = database.replace("postgres@", "postgres:geheim@")
    monkeypatch.setenv("ROPEWALK_DB", address)
    return address


@pytest.fixture
def join(start: Start) -> Join:
    """Starts a worker that has joined."""

    def begin(*options: str) -> subprocess.Popen[str]:
        worker = start("worker", "--lease", "2", *options)
        told(worker, "has joined")
        return worker

    return begin


def holding(worker: subprocess.Popen[str], answer: Answer) -> None:
    """A workflow was started, and the worker holds its first node."""
    answer("run", "held.yaml", "--detach")
    told(worker, "first │ holding")


def both(start: Start, answer: Answer, url: str, *options: str) -> list[subprocess.Popen[str]]:
    """Two workers, the one first that holds the first node of a workflow."""
    workers = [start("worker", "--lease", "2", *options) for _ in range(2)]
    for worker in workers:
        told(worker, "has joined")
    answer("run", "held.yaml", "--detach")
    owner = asyncio.run(_owner(url))
    workers.sort(key=lambda worker: f"-{worker.pid}-" not in owner)
    told(workers[0], "first │ holding")
    return workers


async def _owner(url: str) -> str:
    """The worker that has the one execution in hand, as soon as one has."""
    for _ in range(LOOKS):
        if found := await ask(url, "select owner from live where owner is not null"):
            return str(found[0][0])
    raise AssertionError("no worker takes the execution")


def busy(answer: Answer) -> int:
    """The process that has something in hand, as soon as the list of workers says so."""
    for _ in range(LOOKS):
        for worker in answer("workers"):
            if worker["load"]:
                return int(worker["pid"])
    raise AssertionError("no worker says that it has something in hand")


def runs(answer: Answer) -> list[tuple[str, int, str]]:
    shown = answer("executions", "show", "last")
    return [(run["node"], run["attempt"], run["state"]) for run in shown["runs"]]


def ended(invoke: Invoke) -> str:
    """The last line of the log, once there is one."""
    result = invoke("executions", "events", "last", "--follow")
    assert result.exit_code == 0, result.output
    return str(result.stdout.splitlines()[-1])


def open_gates() -> None:
    open_gate("first.gate")
    open_gate("second.gate")


def test_what_a_killed_worker_had_in_hand_is_finished_by_another(
    start: Start, invoke: Invoke, answer: Answer, url: str
):
    doomed, other = both(start, answer, url)

    doomed.kill()
    told(other, "is dead; 1 of its executions go on here")
    open_gates()

    assert "ExecutionSucceeded" in ended(invoke)
    assert runs(answer) == [("first", 1, "FAILED"), ("first", 2, "SUCCESS"), ("second", 1, "SUCCESS")]
    assert invoke("check").exit_code == 0


def test_a_worker_that_drains_hands_a_node_back_without_using_up_an_attempt(
    start: Start, invoke: Invoke, answer: Answer, url: str
):
    leaving, other = both(start, answer, url, "--drain", "0.1")

    leaving.send_signal(signal.SIGTERM)
    told(leaving, "draining: 1 execution, 1 node running")
    told(leaving, "1 execution for others to go on with")
    told(other, "first │ holding")
    open_gates()

    assert code_of(leaving) == 0
    assert "ExecutionSucceeded" in ended(invoke)
    assert runs(answer) == [("first", 1, "SUCCESS"), ("second", 1, "SUCCESS")]


def test_a_worker_that_drains_lets_a_node_finish_that_can(join: Join, answer: Answer):
    leaving = join()
    holding(leaving, answer)

    leaving.send_signal(signal.SIGINT)
    told(leaving, "draining")
    open_gate("first.gate")

    assert code_of(leaving) == 0
    assert runs(answer)[0] == ("first", 1, "SUCCESS")


def test_a_second_signal_leaves_at_once(join: Join, answer: Answer):
    leaving = join()
    holding(leaving, answer)

    leaving.send_signal(signal.SIGTERM)
    told(leaving, "draining")
    leaving.send_signal(signal.SIGTERM)

    assert code_of(leaving) == 130


def test_what_is_told_about_an_execution_in_other_hands_is_answered_by_its_owner(
    join: Join, invoke: Invoke, answer: Answer
):
    holding(join(), answer)

    refused = invoke("retry", "last")
    outputs = [invoke(verb, "last").stdout for verb in ("pause", "pause")]
    resumed = answer("resume", "last", "--detach")
    cancelled = invoke("cancel", "last")

    assert (refused.exit_code, "cannot retry" in refused.stderr) == (2, True)
    assert [line.rpartition(": ")[2] for line in outputs] == ["paused\n", "paused already\n"]
    assert resumed["workers"] == 1
    assert cancelled.exit_code == 0
    assert answer("executions", "show", "last")["state"] == "CANCELLED"


def test_a_worker_comes_back_under_another_name_when_its_lease_is_lost(
    join: Join, invoke: Invoke, answer: Answer, url: str
):
    worker = join()
    before = answer("workers")[0]["id"]

    asyncio.run(ask(url, "update worker set epoch = epoch + 1"))
    told(worker, f"{before} has lost its lease")
    told(worker, "back as worker")
    holding(worker, answer)

    assert [each["id"] for each in answer("workers") if each["isAlive"]] != [before]


def test_a_worker_survives_a_restart_of_the_database(
    join: Join, invoke: Invoke, answer: Answer, postgres: PostgresServer
):
    worker = join()

    postgres.restart()

    holding(worker, answer)
    open_gates()
    assert "ExecutionSucceeded" in ended(invoke)


def test_a_command_without_a_worker_says_so_and_the_next_worker_does_the_work(
    join: Join, invoke: Invoke, answer: Answer
):
    alone = invoke("run", "hello.yaml", "--detach")
    waiting = answer("executions", "show", "last")["state"]

    join()

    assert "no worker is alive to go on with it; start one with: ropewalk worker" in alone.stderr
    assert (waiting, "ExecutionSucceeded" in ended(invoke)) == ("PENDING", True)


def test_a_rerun_and_a_replay_are_followed_to_their_end_without_any_worker(invoke: Invoke, answer: Answer):
    open_gates()
    first = answer("run", "held.yaml")["id"]

    rerun = answer("rerun", first, "--from", "second")
    replay = invoke("replay", first)
    left = answer("replay", first, "--detach")

    assert (rerun["state"], rerun["output"]) == ("SUCCESS", {"second": "second"})
    assert (replay.exit_code, f"the same output as {first}" in replay.stderr) == (0, True)
    assert (left["workers"], answer("executions", "show", "last")["state"]) == (0, "PENDING")


def test_many_are_cancelled_and_retried_by_the_workers_there_are(join: Join, invoke: Invoke, answer: Answer):
    join()
    asked = [answer("run", "asked.yaml", "--detach")["executionId"] for _ in range(3)]
    while len(answer("approvals")) < 3:
        pass
    invoke("run", "paid.yaml")

    listed = [each["id"] for each in answer("executions", "ls", "--waiting", "--search", "ASK")]
    cancelled = invoke("cancel", "--waiting", "--yes")
    retried = invoke("retry", "--state", "failed", "--yes")

    assert listed == asked[::-1]
    assert cancelled.stdout.splitlines()[-1] == "3 told to stop"
    assert retried.stdout.splitlines()[-1] == "1 retried"
    assert answer("cancel", "--workflow", "asked", "--dry-run") == {"count": 0, "exact": True}


def test_workers_are_listed_with_what_they_have_in_hand(join: Join, invoke: Invoke, answer: Answer):
    dead, alive = join("--pool", "gpu"), join("--slots", "7")
    dead.kill()
    code_of(dead)
    holding(alive, answer)
    assert busy(answer) == alive.pid

    found = {each["pid"]: each for each in answer("workers", "ls")}

    about = ("pool", "slots", "load", "version", "isAlive")
    assert [found[alive.pid][name] for name in about] == ["default", 7, 1, version("ropewalk"), True]
    assert [found[dead.pid][name] for name in ("pool", "isAlive")] == ["gpu", False]
    assert re.search(rf"alive +default +1/7 .* ago .* {alive.pid} ", invoke("workers").stdout)


def test_every_command_answers_on_a_server_as_it_does_on_a_file(invoke: Invoke, answer: Answer):
    def outputs(*db: str) -> list[str]:
        commands = (
            ("run", "hello.yaml"),
            ("run", "paid.yaml"),
            ("dlq", "ls", "--json"),
            ("dlq", "discard", "last"),
            ("cancel", "last"),
            ("executions", "ls", "--json"),
            ("executions", "events", "last", "--json"),
            ("publish", "nobody.waits"),
            ("check",),
        )
        return [_timeless(invoke(*command, *db).stdout) for command in commands]

    assert outputs() == outputs("--db", "here.db")


def _timeless(text: str) -> str:
    """The output without what differs from one store or moment to the next."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b(?:[0-9a-f]{16}){1,2}\b|\d{4}-\d\d-\d\dT[\d:.]+Z", "_", text)


def test_a_doctor_says_how_the_server_is(join: Join, answer: Answer):
    join()

    found = {each["what"]: each for each in answer("doctor")}

    assert found["workers"]["value"] == "1 alive that own executions"
    assert found["PostgreSQL"]["health"] == "ok"
    assert found["rights"]["value"] == "all that are needed"
    assert "of max_connections = 200" in found["connections"]["value"]


@pytest.mark.parametrize(
    "command",
    [
        ("run", "hello.yaml"),
        ("run", "asked.yaml", "--detach"),
        ("run", "asked.yaml", "--detach", "--json"),
        ("resume", "--json"),
        ("workers", "--all"),
        ("doctor",),
    ],
)
def test_a_password_is_never_shown(command: tuple[str, ...], invoke: Invoke, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ROPEWALK_DB")

    reached = invoke(*command, "--db", url)
    missed = invoke(*command, "--db", re.sub(r":\d+/", ":1/", url))

    assert "geheim" not in reached.output + missed.output
    assert (reached.exit_code, missed.exit_code) in ((0, 1), (0, 4))


def test_a_worker_says_who_it_is_without_the_password(start: Start):
    joined = told(start("worker", "--slots", "7"), "has joined")

    assert re.search(
        r"worker \S+ has joined postgresql://postgres:\*\*\*@.*: version .*, pool default, 7 slots", joined
    )


async def test_an_empty_database_is_answered_with_what_makes_a_store_of_it(invoke: Invoke, postgres: PostgresServer):
    empty = await postgres.create_database(is_empty=True)

    before = await asyncio.to_thread(invoke, "executions", "ls", "--db", empty)
    made = await asyncio.to_thread(invoke, "run", "hello.yaml", "--detach", "--db", empty)
    after = await asyncio.to_thread(invoke, "executions", "ls", "--db", empty)

    assert (before.exit_code, made.exit_code, after.exit_code) == (2, 0, 0)
    assert "schema public yet: `ropewalk run FILE` or `ropewalk up` makes it, --db names another" in before.stderr
    await postgres.drop_database(empty)


def test_a_file_has_no_workers_to_join(invoke: Invoke):
    result = invoke("worker", "--db", "here.db", "--json")

    assert result.exit_code == 2
    assert "a file has no workers" in json.loads(result.stdout)["error"]["message"]


def test_many_letters_are_left_to_the_workers_there_are(join: Join, invoke: Invoke, answer: Answer):
    for _ in range(2):
        invoke("run", "paid.yaml")

    alone = invoke("dlq", "requeue", "--workflow", "paid", "--limit", "1")
    counting = invoke("dlq", "requeue", "--workflow", "paid", "--stop-after-failures", "1")
    states = sorted(each["state"] for each in answer("executions", "ls"))
    worker = join()
    served = invoke("dlq", "requeue", "--workflow", "paid", "--stop-after-failures", "1", "--limit", "1")
    worker.send_signal(signal.SIGTERM)

    assert (alone.exit_code, counting.exit_code, served.exit_code) == (0, 4, 0)
    assert states == ["FAILED", "PENDING"]
    assert "no worker is alive to go on with it; start one with: ropewalk worker" in alone.stderr
    assert "no worker is alive" in counting.stderr
    assert code_of(worker) == 0


def test_a_node_that_does_not_stop_keeps_no_worker_of_a_pool_from_leaving(join: Join, answer: Answer, project: Any):
    (project / "away.yaml").write_text(
        "{ropewalk: 1, name: away, nodes: [{id: stays, type: stay, pool: gpu}]}", encoding="utf-8"
    )
    join()
    leaving = join("--pool", "gpu", "--drain", "0.1")
    answer("run", "away.yaml", "--detach")
    told(leaving, "0 executions, 1 node running")

    leaving.send_signal(signal.SIGTERM)

    assert code_of(leaving) == 0
    assert answer("explain", "last")["reasons"][0]["code"] == "NO_WORKER_IN_POOL"
