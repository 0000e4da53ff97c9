"""Many executions by the client: counted, told together, and what waits for a person."""

from ropewalk.client import AsyncClient
from tests.client.samples import ASKED, BROKEN


async def test_many_are_counted_and_told_together_and_approvals_are_listed(client: AsyncClient):
    asked = [(await client.start(ASKED)).id for _ in range(2)]
    failed = await client.start(BROKEN)
    await failed.wait()
    while len(approvals := [each async for each in client.approvals()]) < 2:
        pass

    counts = [
        await client.count_executions(waiting=True),
        await client.count_executions(search=BROKEN["name"]),
        await client.count_to_cancel(waiting=True),
        await client.count_to_retry(workflow=BROKEN["name"]),
    ]
    waiting = [each["id"] async for each in client.executions(waiting=True, before=asked[1])]
    cancelled = [each async for each in client.cancel_all(waiting=True, reason="closed")]
    retried = [each["outcome"] async for each in client.retry_all(all=True, limit=1)]

    assert [each["executionId"] for each in approvals] == asked[::-1]
    assert [each["count"] for each in counts] == [2, 1, 2, 1]
    assert (waiting, retried) == ([asked[0]], ["DONE"])
    assert [(each["id"], each["outcome"]) for each in cancelled] == [(each, "DONE") for each in asked]
