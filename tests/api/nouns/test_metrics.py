"""The figures of a server, as Prometheus reads them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from ropewalk.access import keys
from ropewalk.access.rights import Right, Role
from ropewalk.api.app import create_app
from ropewalk.store import metrics
from ropewalk.store.workspaces import DEFAULT
from ropewalk.wiring import Settings, TelemetrySettings, open_backend
from tests.api.house import API, House
from tests.api.streams import served

ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}
WAITING = {"ropewalk": 1, "name": "waiting", "nodes": [{"id": "a", "type": "delay", "with": {"for": "5s"}}]}

PAINTED = {"ropewalk": 1, "name": "painted", "nodes": [{"id": "a", "type": "noop", "pool": "paint"}]}


@pytest.fixture
async def counted(tmp_path: Path) -> AsyncIterator[House]:
    """A house that keeps figures."""
    settings = Settings(db=str(tmp_path / "ropewalk.db"), telemetry=TelemetrySettings(metrics=True))
    async with open_backend(settings) as backend:
        async with backend.store.transaction() as tx:
            wanted = keys.Wanted(workspace=DEFAULT, name="root", role=Role.ADMIN, is_root=True)
            _, root = await keys.make(tx, wanted, "test", backend.store.now())
        yield House(create_app(backend, "test"), backend, backend.service(DEFAULT), root)


async def figures(house: House, token: str | None = None) -> dict[str, float]:
    async with house.client(token or house.root) as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    lines = (line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


async def test_executions_and_requests_are_counted(counted: House):
    workflow = await counted.save(ONE)
    started = await counted.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})
    await counted.service.ended(started.json()["executionId"])
    await counted.ask("GET", f"/workflow/definitions/{'x' * 201}")
    await counted.ask("GET", "/nowhere")

    found = await figures(counted)

    assert found['ropewalk_executions_ended_total{state="SUCCESS"}'] == 1
    assert found['ropewalk_http_requests_total{operation="startExecution",status="202"}'] == 1
    assert found['ropewalk_http_requests_total{operation="getDefinition",status="422"}'] == 1
    assert found['ropewalk_http_requests_total{operation="unmatched",status="404"}'] == 1
    assert found["ropewalk_store_up"] == 1
    assert found["ropewalk_stale_writes_refused_total"] == 0


async def test_handshakes_are_counted_by_how_they_were_answered(counted: House):
    execution = await counted.service.start(await counted.service.save(WAITING))
    asked = [("executions", counted.root), ("executions", "rw_x_y"), ("nowhere", counted.root)]
    async with served(counted) as url:
        for noun, token in asked:
            await shake_hands(f"{url.replace('http', 'ws')}{API}/workflow/{noun}/{execution}/subscribe", token)
        found = await figures(counted)

    assert found['ropewalk_http_requests_total{operation="subscribeToExecution",status="101"}'] == 1
    assert found['ropewalk_http_requests_total{operation="subscribeToExecution",status="401"}'] == 1
    assert found['ropewalk_http_requests_total{operation="unmatched",status="404"}'] == 1
    assert found['ropewalk_http_request_seconds_count{operation="subscribeToExecution"}'] == 2


async def shake_hands(address: str, token: str) -> None:
    """A client asks for a WebSocket, and leaves after the answer."""
    with suppress(InvalidStatus):
        async with connect(address, additional_headers={"Authorization": f"Bearer {token}"}, proxy=None):
            pass


async def test_what_it_takes_a_runner_to_lease_is_counted_and_looking_in_vain_is_not(counted: House):
    asked = {"pool": "paint", "runnerId": "painter", "waitSeconds": 30}
    waiting = asyncio.ensure_future(counted.ask("POST", "/workflow/runs/lease", json=asked))
    async with asyncio.timeout(30):
        while not counted.service.engine.leasing.waiting:
            await asyncio.sleep(0)
    before = await figures(counted)
    await counted.service.start(await counted.service.save(PAINTED))
    leased = (await waiting).json()["runs"]

    found = await figures(counted)

    assert [each["node"] for each in leased] == ["a"]
    assert (before["ropewalk_lease_seconds_count"], found["ropewalk_lease_seconds_count"]) == (0, 1)
    assert found["ropewalk_lease_seconds_sum"] > 0


async def test_what_waits_for_a_slot_is_seen_in_the_store(counted: House):
    await counted.ask("POST", "/workspaces", json={"id": "small"})
    workflow = await counted.save(WAITING, "small")
    body = {"workflowDefinitionId": workflow, "workspaceId": "small"}
    for _ in range(3):
        await counted.ask("POST", "/workflow/executions/start", json=body)

    found = await figures(counted)

    full = await metrics.full_workspaces(counted.backend.store)
    waiting = await metrics.waiting(counted.backend.store)
    assert found["ropewalk_queue_waiting"] == waiting > 0
    assert found["ropewalk_workspaces_at_capacity"] == len(full) == 1
    assert (full[0].id, full[0].slots, full[0].taken) == ("small", 1, 1)


async def test_a_key_for_prometheus_opens_nothing_else(counted: House):
    await counted.workspace("secret")
    token = await counted.key(Role.ADMIN, is_root=True, scopes=(Right.OBSERVE,))

    asked = [
        await counted.ask("GET", "/workflow/definitions", token),
        await counted.ask("GET", "/workers", token),
        await counted.ask("POST", "/workspaces", token, json={"id": "mine"}),
        await counted.ask("PATCH", "/workspaces/default", token, json={"slots": 1}),
    ]
    seen = (await counted.ask("GET", "/workspaces", token)).json()["items"]

    assert "ropewalk_store_up" in await figures(counted, token)
    assert [each.status_code for each in asked] == [403] * 4
    assert [each["id"] for each in seen] == ["default"], "the key's own"


async def test_a_caller_who_may_not_observe_gets_no_metrics(counted: House):
    admin = await counted.key(Role.ADMIN)
    operator = await counted.key(Role.ADMIN, is_root=True, scopes=(Right.OPERATE,))
    answers = []
    for token in (admin, operator, None):
        async with counted.client(token) as client:
            answers.append(await client.get("/metrics"))

    assert [answer.status_code for answer in answers] == [403, 403, 401]


async def test_a_server_without_figures_says_so(house: House):
    async with house.client(house.root) as client:
        answer = await client.get("/metrics")

    assert answer.status_code == 404
