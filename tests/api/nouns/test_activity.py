"""The audit log over HTTP: who did what to what, for those who answer for a workspace."""

import pytest

from ropewalk.access.rights import Role
from tests.api.stories import BROKEN, EXECUTIONS, LETTERS, Town


async def verbs(town: Town, query: str = "") -> list[str]:
    return [each["verb"] for each in (await town.get(f"/activity?{query}"))["items"] if each["verb"] != "create-key"]


async def test_what_was_done_is_told_newest_first_and_found_by_who_what_and_whom(town: Town):
    operator = await town.key(Role.OPERATOR)
    execution = await town.run(BROKEN)
    letter = (await town.letter(execution))["id"]
    await town.tell(f"{LETTERS}/{letter}/discard", {"notes": "void"}, operator)
    await town.tell(f"{EXECUTIONS}/{execution}/retry")
    who = f"key:{operator.split('_')[1]}"

    assert await verbs(town) == ["retry", "discard", "start"]
    assert await verbs(town, f"actor={who}") == ["discard"]
    assert await verbs(town, "verb=retry") == ["retry"]
    assert await verbs(town, f"object={execution}") == ["retry", "start"]
    assert await verbs(town, f"object={execution}&actor={who}") == []
    (entry,) = (await town.get(f"/activity?object={letter}"))["items"]
    assert (entry["actor"], entry["detail"]) == (who, "void")


async def test_lists_go_on_where_a_page_ended(town: Town):
    executions = [await town.run(BROKEN) for _ in range(3)]

    first = await town.get("/activity?verb=start&limit=2")
    rest = await town.get(f"/activity?verb=start&limit=2&cursor={first['next']}")

    assert [each["object"] for each in (*first["items"], *rest["items"])] == executions[::-1]


async def test_the_log_is_for_those_who_answer_for_the_workspace(town: Town):
    await town.workspace("acme")
    operator, admin, stranger = [
        await town.key(role, where)
        for role, where in ((Role.OPERATOR, "default"), (Role.ADMIN, "default"), (Role.ADMIN, "acme"))
    ]
    execution = await town.run(BROKEN)

    assert (await town.ask("GET", "/activity", operator)).status_code == 403
    assert execution in (await town.ask("GET", "/activity", admin)).text
    assert execution not in (await town.ask("GET", "/activity", stranger)).text


@pytest.mark.parametrize("query", ["actor=%00", "verb=" + "x" * 256, "object=", "cursor=x", "limit=201"])
async def test_a_list_is_not_asked_for_in_vain(town: Town, query: str):
    answer = await town.ask("GET", f"/activity?{query}")

    assert answer.status_code == 422
    assert answer.json()["problems"][0]["field"].startswith("query.")
