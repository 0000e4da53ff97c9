"""The resource names of the first API: the same answers under their old paths."""

from typing import Any

import httpx2
import pytest

from ropewalk.access.rights import Role
from ropewalk.core.events import RunWaiting
from tests.api.stories import ASK, BROKEN, EXECUTIONS, LETTERS, UNKNOWN_ID, Town
from tests.engines.worlds import act, flow

GOOD = flow(act("a", 7), name="good")


async def old(town: Town, method: str, path: str, token: str | None = None, **more: Any) -> httpx2.Response:
    async with town.client(town.root if token is None else token) as client:
        return await client.request(method, f"/v1{path}", **more)


async def test_lists_are_bare_and_say_in_a_header_where_to_go_on(town: Town):
    executions = [await town.run(GOOD) for _ in range(3)]

    first = await old(town, "GET", "/WorkflowExecution?limit=2&state=SUCCESS")
    where = first.links["next"]["url"]
    rest = await old(town, "GET", where.removeprefix("/v1"))

    assert [each["id"] for each in (*first.json(), *rest.json())] == executions[::-1]
    assert "state=SUCCESS" in where
    assert "link" not in rest.headers


async def test_an_execution_and_its_runs_are_told_in_our_words_with_the_old_name_of_the_node(town: Town):
    execution = await town.run(GOOD)

    found = (await old(town, "GET", f"/WorkflowExecution/{execution}")).json()
    (run,) = (await old(town, "GET", f"/Run?executionId={execution}&taskId=a&state=SUCCESS")).json()
    whole = (await old(town, "GET", f"/Run/{run['id']}")).json()

    assert found == await town.get(f"{EXECUTIONS}/{execution}")
    assert (run["taskId"], run["node"], whole["taskId"], whole["output"]) == ("a", "a", "a", 7)
    assert (await old(town, "GET", f"/Run?executionId={execution}&taskId=b")).json() == []


async def test_verbs_answer_200_whether_or_not_anything_changed(town: Town):
    execution = await town.start(ASK)
    await town.until(execution, RunWaiting)

    answers = [
        await old(town, "POST", f"/WorkflowExecution/{execution}/{verb}")
        for verb in ("pause", "pause", "resume", "cancel", "cancel")
    ]

    assert {each.status_code for each in answers} == {200}
    assert [each.json()["changed"] for each in answers] == [True, False, True, True, False]


async def test_dead_letters_are_listed_requeued_and_discarded(town: Town):
    first, second = await town.run(BROKEN), await town.run(BROKEN)
    one, other = [(await town.letter(each))["id"] for each in (first, second)]

    listed = await old(town, "GET", "/DeadLetterQueue?resolution=PENDING")
    requeued = await old(town, "POST", f"/DeadLetterQueue/{one}/requeue", json={"fails": 0})
    discarded = await old(town, "POST", f"/DeadLetterQueue/{other}/discard")

    assert [(each["id"], each["taskId"]) for each in listed.json()] == [(other, "a"), (one, "a")]
    assert (requeued.status_code, discarded.status_code) == (200, 200)
    assert (await town.service.ended(first)).output == {"a": 7}
    assert (await old(town, "GET", f"/DeadLetterQueue/{other}")).json()["resolution"] == "DISCARDED"
    assert (await old(town, "POST", f"/DeadLetterQueue/{other}/requeue")).status_code == 409


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/WorkflowExecution/{execution}"),
        ("POST", "/WorkflowExecution/{execution}/cancel"),
        ("GET", "/Run/{run}"),
        ("GET", "/Run?executionId={execution}"),
        ("GET", "/DeadLetterQueue/{letter}"),
        ("POST", "/DeadLetterQueue/{letter}/requeue"),
        ("POST", "/DeadLetterQueue/{letter}/discard"),
    ],
)
async def test_the_same_gate_is_before_them(town: Town, method: str, path: str):
    await town.workspace("acme")
    execution = await town.run(BROKEN, workspace="acme")
    (letter,) = (await town.get(f"{LETTERS}?workspaceId=acme"))["items"]
    theirs = path.format(execution=execution, run=letter["runId"], letter=letter["id"])
    absent = path.format(execution=UNKNOWN_ID, run=UNKNOWN_ID, letter=UNKNOWN_ID)
    stranger = await town.key(Role.ADMIN)

    answers = [
        await old(town, method, theirs, stranger),
        await old(town, method, absent, stranger),
        await old(town, method, theirs, "nonsense"),
    ]

    assert [each.status_code for each in answers] == [404, 404, 401]


@pytest.mark.parametrize("path", ["/WorkflowExecution?limit=0", "/Run", "/Run?executionId=a&taskId=%00",
                                  "/DeadLetterQueue?resolution=x", "/WorkflowExecution/a'b"])  # fmt: skip
async def test_what_makes_no_sense_is_refused_by_its_field(town: Town, path: str):
    answer = await old(town, "GET", path)

    assert answer.status_code == 422
    assert answer.json()["problems"]
