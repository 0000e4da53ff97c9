"""Dead letters by the client."""

from typing import Any

import pytest

from ropewalk.client import AsyncClient
from ropewalk.core.errors import Conflict, ExecutionEnded
from tests.client.samples import BROKEN


async def dead_letter(client: AsyncClient, workflow: dict[str, Any] = BROKEN) -> str:
    """The id of a letter of an execution that failed."""
    await client.save(workflow, publish=True)
    execution = await client.start(workflow["name"])
    with pytest.raises(ExecutionEnded):
        await execution.result()
    (newest,) = [each["id"] async for each in client.dead_letters(limit=1)]
    return newest


async def test_a_letter_is_noted_fixed_and_its_execution_goes_on(client: AsyncClient):
    letter = await dead_letter(client)
    await client.note(letter, "asked the bank")

    execution = await client.fix(letter, {"by": "hand"})

    assert await client.execution(execution).result() == {"stop": {"by": "hand"}}
    assert "asked the bank" in str((await client.dead_letter(letter))["notes"])
    with pytest.raises(Conflict):
        await client.requeue(letter)


async def test_a_letter_is_tried_again_with_other_inputs(client: AsyncClient):
    letter = await dead_letter(client)

    execution = await client.requeue(letter, {"message": "still no"})

    with pytest.raises(ExecutionEnded, match="still no"):
        await client.execution(execution).result()
    (second,) = [each["id"] async for each in client.dead_letters(execution=execution)]
    assert [each async for each in client.dead_letters(execution=letter)] == []
    assert (await client.discard(second))["resolution"] == "DISCARDED"


async def test_what_failed_alike_is_worked_off_step_by_step(client: AsyncClient):
    for _ in range(3):
        await dead_letter(client)
    (group,) = [each async for each in client.dead_letter_groups()]

    requeued = [each["outcome"] async for each in client.requeue_all(group["fingerprint"], limit=1)]
    stopped = [each["outcome"] async for each in client.requeue_all(group["fingerprint"], stop_after_failures=1)]

    assert group["count"] == 3
    assert requeued == ["REQUEUED"]
    assert (stopped[0], stopped[-1]) == ("REQUEUED", "STOPPED")
