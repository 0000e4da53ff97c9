"""External runners: they lease, live, and report; what comes late or from others changes nothing."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.api.app import create_app
from ropewalk.api.backend import Backend
from ropewalk.core.duration import SECOND
from ropewalk.core.rate_limit import RateLimit
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service import workspaces
from ropewalk.wiring import Settings, open_service
from tests.api.house import KEY, House
from tests.api.streaming.test_stream_fleet import idle_house, worker
from tests.api.streams import PATIENCE, served

EXAMPLES = Path(__file__).parents[3] / "examples"
RUNS = "/workflow/runs"


def painted(**node: Any) -> dict[str, Any]:
    """A workflow whose one node is for the pool `paint`."""
    fields = {"id": "paint", "type": "noop", "pool": "paint", "with": {"value": {"colour": "{{ input }}"}}, **node}
    return {"ropewalk": 1, "name": "painted", "nodes": [fields]}


@asynccontextmanager
async def opened(db: str, lease: float = 120.0) -> AsyncIterator[House]:
    """A house whose leases last so long."""
    async with open_service(Settings(db=db, worker=WorkerSettings(runner_lease=lease))) as service:
        backend = await Backend.open(service.store, service.of, key=KEY)
        async with service.store.transaction() as tx:
            wanted = keys.Wanted(workspace="default", name="root", role=Role.ADMIN, is_root=True)
            _, root = await keys.make(tx, wanted, "test", service.store.now())
        yield House(create_app(backend, "test"), backend, service, root)


async def start(house: House, document: dict[str, Any] | None = None, value: Any = "red") -> str:
    workflow = await house.save(document or painted())
    return await house.service.start(await house.service.engine.versions.version(workflow, 1), value)


async def lease(house: House, token: str | None = None, **body: Any) -> list[dict[str, Any]]:
    wanted = {"pool": "paint", "runnerId": "ann", "waitSeconds": 20, **body}
    answer = await house.ask("POST", f"{RUNS}/lease", token, json=wanted, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["runs"]
    return found


async def report(house: House, run: dict[str, Any], verb: str, token: str | None = None, **body: Any) -> Any:
    shown = {"leaseToken": run["leaseToken"], **body}
    return await house.ask("POST", f"{RUNS}/{run['runId']}/{verb}", token, json=shown)


async def names(house: House, execution: str) -> list[str]:
    """The kinds of events of an execution that is over."""
    return [type(event).__name__ async for _, event in house.service.follow(execution)]


async def test_a_run_is_leased_kept_and_completed(each_db: str):
    async with opened(each_db) as house:
        execution = await start(house)
        [run] = await lease(house)

        beat = await report(house, run, "heartbeat")
        taken = await report(house, run, "complete", output={"painted": "red"})
        ended = await house.service.ended(execution)

        assert (run["executionId"], run["node"], run["attempt"], run["type"]) == (execution, "paint", 1, "noop")
        assert run["inputs"] == {"value": {"colour": "red"}}
        assert run["timeoutSeconds"] == 300
        assert len(run["traceparent"]) == 55
        assert beat.json()["stop"] is False
        assert taken.status_code == 200
        assert ended.output == {"paint": {"painted": "red"}}
        [shown] = (await house.ask("GET", f"{RUNS}?executionId={execution}")).json()["items"]
        assert shown["id"] == run["runId"]


async def test_runs_of_what_another_process_executes_are_leased_and_reported_too(database: str):
    async with idle_house(database) as house, worker(database):
        execution = await start(house)
        runs: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE):
            while not runs:
                runs = await lease(house)
        await report(house, runs[0], "complete", output="far away")
        ended = await house.service.ended(execution)

    assert ended.output == {"paint": "far away"}


async def test_a_waiting_runner_is_woken_when_work_comes(house: House):
    waiting = asyncio.ensure_future(lease(house))
    await line_forms(house)

    execution = await start(house)
    [run] = await waiting

    assert run["executionId"] == execution


async def line_forms(house: House) -> None:
    async with asyncio.timeout(PATIENCE):
        while not house.service.engine.leasing.waiting:
            await asyncio.sleep(0)


async def test_no_runner_waits_longer_than_asked(house: House):
    await house.save(painted())

    assert await lease(house, waitSeconds=0) == []


@pytest.mark.parametrize("ports", [["maybe"], ["true", "false"], []])
async def test_ports_that_a_node_does_not_have_are_refused_and_the_run_stays_leased(house: House, ports: list[str]):
    execution = await start(house, painted(type="if", **{"with": {"condition": True}}))
    [run] = await lease(house)

    refused = await report(house, run, "complete", output=True, ports=ports)
    taken = await report(house, run, "complete", output=True, ports=["true"])

    assert (refused.status_code, refused.json()["problems"][0]["field"], taken.status_code) == (422, "ports", 200)
    assert (await house.service.ended(execution)).state == "SUCCESS"


@pytest.mark.parametrize("verb", ["heartbeat", "complete", "fail"])
async def test_a_second_report_changes_nothing_and_is_counted(house: House, verb: str):
    execution = await start(house)
    [run] = await lease(house)
    await report(house, run, "complete", output=1)
    await house.service.ended(execution)
    before = await names(house, execution)

    body = {"error": {"type": "PERMANENT", "message": "no"}} if verb == "fail" else {}
    answer = await report(house, run, verb, **body)

    assert answer.status_code == 409
    assert await names(house, execution) == before
    assert house.service.engine.leasing.refused == 1


@pytest.mark.parametrize("change", ["token", "run", "runner"])
async def test_a_lease_is_good_for_its_run_and_its_runner_alone(house: House, change: str):
    await start(house)
    await start(house)
    runner, other = await house.key(Role.RUNNER), await house.key(Role.RUNNER)
    [run] = await lease(house, runner)
    [second] = await lease(house, runner)
    forged = {
        "token": {**run, "leaseToken": run["leaseToken"][:-2] + "AA"},
        "run": {**run, "runId": second["runId"]},
        "runner": run,
    }[change]

    answer = await report(house, forged, "complete", other if change == "runner" else runner, output=1)
    real = await report(house, run, "complete", runner, output=1)

    assert answer.status_code == 409
    assert real.status_code == 200
    assert house.service.engine.leasing.refused == 1


async def test_a_runner_that_goes_silent_loses_its_run_and_another_gets_it(tmp_path: Path):
    async with opened(str(tmp_path / "ropewalk.db"), lease=0.5) as house:
        execution = await start(house)
        [lost] = await lease(house)
        [again] = await lease(house, runnerId="bob")

        late = await report(house, lost, "complete", output="late")
        await report(house, again, "complete", output="in time")
        ended = await house.service.ended(execution)

    assert again["attempt"] == 2
    assert again["idempotencyKey"] == lost["idempotencyKey"]
    assert late.status_code == 409
    assert ended.output == {"paint": "in time"}


async def test_heartbeats_keep_a_run_but_not_beyond_its_time_limit(tmp_path: Path):
    async with opened(str(tmp_path / "ropewalk.db"), lease=1.0) as house:
        execution = await start(house, painted(timeout="2s", retry={"maxAttempts": 1}))
        [run] = await lease(house)
        beats = 0
        async with asyncio.timeout(PATIENCE):
            while (await report(house, run, "heartbeat")).status_code == 200:
                beats += 1
        ended = await house.service.ended(execution)
        [letter] = (await house.ask("GET", "/workflow/dead-letters")).json()["items"]

    assert beats > 5
    assert ended.state == "FAILED"
    assert letter["errorType"] == "TIMEOUT"


@pytest.mark.parametrize(
    ("error", "attempts"),
    [({"type": "PERMANENT", "message": "no red"}, 1), ({"type": "TRANSIENT", "message": "busy", "retryAfter": 0}, 2)],
)
async def test_a_failure_is_tried_again_if_its_kind_allows(house: House, error: dict[str, Any], attempts: int):
    retry = {"maxAttempts": 2, "delay": "10ms", "jitter": 0}
    execution = await start(house, painted(retry=retry))
    for _ in range(attempts):
        [run] = await lease(house)
        await report(house, run, "fail", error=error)

    ended = await house.service.ended(execution)

    assert ended.state == "FAILED"
    assert (await house.ask("GET", "/workflow/dead-letters")).json()["items"][0]["attempt"] == attempts


async def test_a_cancelled_run_is_told_to_stop_with_its_next_heartbeat(house: House):
    execution = await start(house)
    [run] = await lease(house)
    await house.service.cancel(execution)

    async with asyncio.timeout(PATIENCE):
        while not (await report(house, run, "heartbeat")).json().get("stop", False):
            await asyncio.sleep(0)
    await report(house, run, "fail", error={"type": "TRANSIENT", "message": "stopped"})
    ended = await house.service.ended(execution)

    assert ended.state == "CANCELLED"


async def test_a_large_output_is_kept_apart_and_comes_back_whole(house: House):
    execution = await start(house)
    [run] = await lease(house)
    text = "x" * 200_000

    await report(house, run, "complete", output=text)
    await house.service.ended(execution)
    shown = await house.ask("GET", f"/workflow/executions/{execution}")

    assert shown.json()["output"] == {"paint": text}


async def test_a_key_leases_only_from_its_pools_and_its_workspace(house: House):
    await start(house)
    await house.workspace("elsewhere")
    bound = await house.key(Role.RUNNER, pools=("gpu",))
    stranger = await house.key(Role.RUNNER, "elsewhere")
    viewer = await house.key(Role.VIEWER)
    body = {"pool": "paint", "runnerId": "eve"}

    answers = [await house.ask("POST", f"{RUNS}/lease", token, json=body) for token in (bound, viewer, stranger)]

    assert [answer.status_code for answer in answers] == [403, 403, 200]
    assert answers[2].json()["runs"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"pool": "default", "runnerId": "ann"},
        {"pool": "paint", "runnerId": "ann", "limit": 101},
        {"pool": "paint", "runnerId": "ann", "waitSeconds": 61},
        {"pool": "", "runnerId": "ann"},
        {"pool": "paint", "runnerId": "a b"},
        {"pool": "paint"},
    ],
)
async def test_what_cannot_be_asked_for_is_refused(house: House, body: dict[str, Any]):
    answer = await house.ask("POST", f"{RUNS}/lease", json=body)

    assert answer.status_code == 422
    assert answer.json()["problems"]


async def test_a_run_stays_with_its_runner_when_the_server_starts_anew(tmp_path: Path):
    db = str(tmp_path / "ropewalk.db")
    async with opened(db) as house:
        execution = await start(house)
        [run] = await lease(house)
        root = house.root

    async with opened(db) as house:
        taken = await report(house, run, "complete", root, output="after")
        ended = await house.service.ended(execution)

    assert taken.status_code == 200
    assert ended.output == {"paint": "after"}


async def test_a_runner_that_hangs_up_while_waiting_takes_nothing_along(house: House):
    async with served(house) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        body = b'{"pool": "paint", "runnerId": "eve", "waitSeconds": 60}'
        head = f"POST /api/v1{RUNS}/lease HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {house.root}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await line_forms(house)
        writer.transport.abort()
        async with asyncio.timeout(PATIENCE):
            while house.service.engine.leasing.waiting:
                await asyncio.sleep(0)

        await start(house)
        [run] = await lease(house)

    assert run["attempt"] == 1


async def test_the_tokens_runs_used_up_are_kept_and_summed_however_they_ended(house: House):
    document = painted(forEach="{{ input }}", retry={"delay": "1ms"}, failureTolerance=1)
    execution = await start(house, document, ["red", "blue", "green"])
    runs = [(await lease(house))[0] for _ in range(3)]
    await report(house, runs[0], "complete", tokens=1_000)
    await report(house, runs[1], "fail", tokens=200, error={"type": "TRANSIENT", "message": "no"})
    await report(house, runs[2], "complete")
    runs += await lease(house)
    await report(house, runs[3], "fail", tokens=30, error={"type": "PERMANENT", "message": "no"})
    await house.service.ended(execution)

    kept = [(await house.ask("GET", f"{RUNS}/{run['runId']}")).json()["tokenCost"] for run in runs]
    metrics = (await house.ask("GET", f"/workflow/executions/{execution}")).json()["metrics"]

    assert [run["attempt"] for run in runs] == [1, 1, 1, 2]
    assert kept == [1_000, 200, None, 30]
    assert metrics["tokens"] == 1_230


@pytest.mark.parametrize("tokens", [-1, 1.5, "7", True, 2**53 + 1])
async def test_tokens_that_cannot_be_counted_are_refused(house: House, tokens: Any):
    await start(house)
    [run] = await lease(house)

    answer = await report(house, run, "complete", tokens=tokens)

    assert answer.status_code in (400, 422)
    assert (await report(house, run, "heartbeat")).status_code == 200


async def test_a_pool_without_a_runner_is_explained(house: House):
    execution = await start(house)
    async with asyncio.timeout(PATIENCE):
        while not await house.service.store.fetch("any_offer"):
            await asyncio.sleep(0)

    said = (await house.ask("GET", f"/workflow/executions/{execution}/explain")).text

    assert "paint" in said
    assert "NO_WORKER_IN_POOL" in said


# The examples


PYTHON = [sys.executable, str(EXAMPLES / "runner.py")]
CURL = ["sh", str(EXAMPLES / "runner.sh")]
with_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.mark.parametrize(
    ("program", "output"),
    [
        pytest.param(PYTHON, {"length": 28}, id="python"),
        pytest.param(CURL, {"done": "paint"}, id="curl", marks=with_curl),
    ],
)
async def test_the_examples_do_real_work(house: House, program: list[str], output: Any):
    token = await house.key(Role.RUNNER, pools=("paint",))
    async with served(house) as url:
        environment = {**os.environ, "ROPEWALK_TOKEN": token}
        process = await asyncio.create_subprocess_exec(
            *program, url, "paint", env=environment,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            executions = [await start(house) for _ in range(3)]
            async with asyncio.timeout(PATIENCE):
                ends = [await house.service.ended(execution) for execution in executions]
        finally:
            os.killpg(process.pid, 9)
            await process.wait()

    assert [end.output for end in ends] == [{"paint": output}] * 3


@pytest.mark.parametrize("program", [pytest.param(PYTHON, id="python"), pytest.param(CURL, id="curl", marks=with_curl)])
@pytest.mark.parametrize(
    ("role", "pools", "reason"),
    [(Role.RUNNER, ("print",), "this key is for other pools than 'paint'"), (Role.VIEWER, None, "the right to run")],
)
async def test_an_example_whose_key_is_refused_says_why_and_what_to_do(
    house: House, program: list[str], role: Role, pools: tuple[str, ...] | None, reason: str
):
    token = await house.key(role, pools=pools)
    async with served(house) as url:
        process = await asyncio.create_subprocess_exec(
            *program, url, "paint", env={**os.environ, "ROPEWALK_TOKEN": token}, stderr=asyncio.subprocess.PIPE
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE):
            _, told = await process.communicate()

    assert process.returncode == 1
    assert f"{url} gives no runs of pool paint: " in told.decode()
    assert reason in told.decode()
    assert "with the role runner and the pool paint\n" in told.decode()
    assert "Traceback" not in told.decode()


async def test_a_runner_is_given_a_run_when_its_rate_limit_lets_it_begin(each_db: str):
    async with opened(each_db) as house:
        await workspaces.change(house.service, "default", None, UNSET, "test", {"slow": RateLimit(1, SECOND)})
        ids = [await start(house, painted(rateLimit="slow"), value) for value in ("red", "blue", "green")]
        loop, begun = asyncio.get_running_loop(), []
        for _ in ids:
            [run] = await lease(house, limit=10)
            begun.append(loop.time())
            assert run["attempt"] == 1
            await report(house, run, "complete", output=run["inputs"])

        ends = [await house.service.ended(each) for each in ids]

        assert [each.state for each in ends] == ["SUCCESS"] * 3
        # A runner hears of its run a little after the slot.
        assert all(later - earlier > 0.9 for earlier, later in pairwise(begun))


async def test_a_rate_limit_that_is_out_of_reach_fails_a_run_before_a_runner_has_it(each_db: str):
    async with opened(each_db) as house:
        await workspaces.change(house.service, "default", None, UNSET, "test", {"slow": RateLimit(1, SECOND)})
        workflow = await house.save(painted(rateLimit="slow"))
        version = await house.service.engine.versions.version(workflow, 1)
        execution = await house.service.start(version, "red", bounded_by=("user:ann",))

        assert await lease(house, waitSeconds=1) == []
        assert (await house.service.ended(execution)).state == "FAILED"
