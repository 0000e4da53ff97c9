"""External runners by the client."""

import pytest

from ropewalk.client import AsyncClient
from ropewalk.core.errors import ExecutionEnded, InvalidTransition
from tests.client.servers import Served


async def test_a_runner_is_handed_runs_and_its_report_counts(server: Served, client: AsyncClient):
    painted = {"id": "paint", "type": "set", "pool": "paint", "with": {"values": {"colour": "red"}}}
    await client.save({"ropewalk": 1, "name": "painted", "nodes": [painted]}, publish=True)
    execution = await client.start("painted")
    runner = client.runner("paint", "painter-1")

    lease = await anext(aiter(runner.leases()))
    kept = await lease.heartbeat()
    await lease.complete({"painted": lease.inputs["values"]["colour"]}, tokens=7)

    assert kept["stop"] is False
    assert await execution.result() == {"paint": {"painted": "red"}}
    assert (await execution.details())["metrics"]["tokens"] == 7
    with pytest.raises(InvalidTransition):
        await lease.complete("again")


async def test_a_run_that_failed_at_its_runner_is_tried_again(client: AsyncClient):
    painted = {"id": "paint", "type": "set", "pool": "paint", "with": {"values": {}}, "retry": {"delay": "10ms"}}
    await client.save({"ropewalk": 1, "name": "painted", "nodes": [painted]}, publish=True)
    execution = await client.start("painted")

    attempts = []
    async for lease in client.runner("paint").leases():
        attempts.append(lease.run["attempt"])
        kind = "TRANSIENT" if len(attempts) == 1 else "PERMANENT"
        await lease.fail("out of red", kind, tokens=5, status=409, body="no red")
        if len(attempts) == 2:
            break

    assert attempts == [1, 2]
    with pytest.raises(ExecutionEnded, match="out of red"):
        await execution.result()
    assert (await execution.details())["metrics"]["tokens"] == 10
    (node,) = [each async for each in execution.nodes()]
    assert node["error"] == {
        "type": "PERMANENT", "message": "out of red", "detail": None, "status": 409, "body": "no red",
    }  # fmt: skip
