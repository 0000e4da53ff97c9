"""The dead letters of a map's items over HTTP: those beyond the tolerance and those within it."""

from typing import Any

from tests.api.stories import EXECUTIONS, LETTERS, Town
from tests.engines.worlds import Json, act, flow


def mapped(**fields: Any) -> Json:
    return flow(
        act("each", "{{ item }}", forEach=[0, 1, 2, 3], fails="{{ item % 2 }}", kind="PERMANENT", **fields), name="map",
        output="{{ nodes.each.output }}",
    )  # fmt: skip


async def fingerprint(town: Town) -> str:
    (group,) = (await town.get(f"{LETTERS}/groups"))["items"]
    assert group["count"] == 2
    return str(group["fingerprint"])


async def test_items_that_failed_are_requeued_in_bulk_and_their_execution_succeeds(town: Town):
    execution = await town.run(mapped(onItemFailure="continue"))
    assert (await town.get(f"{EXECUTIONS}/{execution}"))["state"] == "FAILED"

    step = await town.tell(f"{LETTERS}/requeue", {"fingerprint": await fingerprint(town)})

    assert (step.status_code, step.json()["counts"]) == (200, {"REQUEUED": 2})
    assert (await town.service.ended(execution)).output == [0, 1, 2, 3]


async def test_tolerated_items_are_requeued_in_bulk_after_their_execution_succeeded(town: Town):
    execution = await town.run(mapped(failureTolerance="50%", deadLetters="always"))
    before = await town.get(f"{EXECUTIONS}/{execution}")
    assert (before["state"], before["output"]) == ("SUCCESS", [0, None, 2, None])

    await town.tell(f"{LETTERS}/requeue", {"fingerprint": await fingerprint(town)})
    await town.service.ended(execution)

    after = await town.get(f"{EXECUTIONS}/{execution}")
    assert (after["state"], after["output"]) == ("SUCCESS", [0, 1, 2, 3])


async def test_success_is_final_for_every_other_verb(town: Town):
    execution = await town.run(mapped(failureTolerance="50%", deadLetters="always"))

    told = [await town.tell(f"{EXECUTIONS}/{execution}/{verb}") for verb in ("retry", "pause", "resume", "cancel")]

    assert [each.status_code for each in told] == [409] * 4


async def test_fields_that_need_a_map_are_refused_with_their_place(town: Town):
    document = flow(act("a", onItemFailure="continue", deadLetters="sometimes"), name="bad")

    told = await town.tell("/workflow/definitions", document)

    assert told.status_code == 422
    assert [(each["field"], each["message"]) for each in told.json()["problems"]] == [
        ("nodes[0].deadLetters", "'sometimes' must be one of beyondTolerance, always"),
        ("nodes[0].onItemFailure", "has an effect only together with 'forEach', which is missing"),
        ("nodes[0].deadLetters", "has an effect only together with 'forEach', which is missing"),
    ]
