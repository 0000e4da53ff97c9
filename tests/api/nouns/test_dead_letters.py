"""Dead letters over HTTP: each decision is made once, one by one or many in bounded steps."""

from typing import Any

import httpx2
import pytest

from ropewalk.access.rights import Role
from ropewalk.api.nouns import dead_letters as api
from ropewalk.store import audit
from tests.api.stories import BROKEN, EXECUTIONS, LETTERS, UNKNOWN_ID, Town, town_on
from tests.engines.worlds import ONCE, act, flow

MENDED = flow(act("a", 7, fails=1, retry=ONCE), name="mended")
OTHER = flow(act("b", "s3cret", fails=99, message="no connection", retry=ONCE), name="other")


async def listed(town: Town, query: str = "", token: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await town.get(f"{LETTERS}?{query}", token))["items"]
    return found


async def executions_of(town: Town, query: str = "", token: str | None = None) -> list[str]:
    return [each["executionId"] for each in await listed(town, query, token)]


# Lists


async def test_a_letter_tells_why_and_with_what_its_run_gave_up(town: Town):
    execution = await town.run(BROKEN)
    (found,) = await listed(town)

    letter = await town.get(f"{LETTERS}/{found['id']}")

    assert {**letter, "errorDetail": None} == found
    assert letter["errorDetail"].endswith("NodeFailure: no luck")
    assert (letter["executionId"], letter["node"], letter["failureType"]) == (execution, "a", "MAX_RETRIES")
    assert (letter["inputs"], letter["config"]["type"]) == ({"value": 7, "fails": 99}, "act")
    assert (letter["resolution"], letter["reason"], letter["payloads"]) == ("PENDING", "no luck", True)


async def test_letters_are_found_by_what_is_known_of_them(town: Town):
    first, second, third = await town.run(BROKEN), await town.run(OTHER), await town.run(MENDED)
    await town.tell(f"{LETTERS}/{(await town.letter(first))['id']}/discard")
    letter = await town.letter(second)
    at = letter["createdAt"]

    assert await executions_of(town) == [third, second, first]
    assert await executions_of(town, "resolution=PENDING") == [third, second]
    assert await executions_of(town, "resolution=DISCARDED") == [first]
    assert await executions_of(town, "node=b") == [second]
    assert await executions_of(town, f"executionId={first}") == [first]
    assert await executions_of(town, f"executionId={first}&resolution=PENDING") == []
    assert await executions_of(town, f"executionId={UNKNOWN_ID}") == []
    assert await executions_of(town, f"workflowId={letter['workflowId']}") == [second]
    assert await executions_of(town, f"fingerprint={letter['fingerprint']}") == [second]
    assert await executions_of(town, f"from={at}") == [third, second]
    assert await executions_of(town, f"to={at}") == [first]
    assert await executions_of(town, "to=1999-01-01T00:00:00Z") == []
    assert await executions_of(town, f"idPart={letter['id'][-8:]}") == [second]
    assert await executions_of(town, f"idPart={letter['id'][-8:]}&resolution=DISCARDED") == []
    assert await executions_of(town, f"idPart={letter['id'][:20]}&fingerprint={letter['fingerprint']}") == [second]
    assert await executions_of(town, f"idPart={letter['id'][-8:]}&executionId={first}") == []


async def test_a_list_goes_on_where_a_page_ended_also_after_resolutions(town: Town):
    every = [await town.run(BROKEN) for _ in range(5)][::-1]
    await town.tell(f"{LETTERS}/{(await town.letter(every[1]))['id']}/discard")

    paged: list[str] = []
    query = "limit=2"
    while query:
        page = await town.get(f"{LETTERS}?{query}")
        paged += [each["executionId"] for each in page["items"]]
        query = f"limit=2&cursor={page['next']}" if page["next"] else ""

    assert paged == every


async def test_what_failed_alike_is_gathered_the_most_frequent_first(town: Town):
    for document in (BROKEN, OTHER, BROKEN):
        await town.run(document)

    whole = await town.get(f"{LETTERS}/groups")
    first = await town.get(f"{LETTERS}/groups?limit=1")
    second = await town.get(f"{LETTERS}/groups?limit=1&cursor={first['next']}")

    assert [(each["workflow"], each["count"]) for each in whole["items"]] == [("broken", 2), ("other", 1)]
    assert [*first["items"], *second["items"]] == whole["items"]


# One letter


async def test_a_requeued_letter_is_tried_again_with_other_inputs(town: Town):
    execution = await town.run(BROKEN)
    letter = await town.letter(execution)
    path = f"{LETTERS}/{letter['id']}/requeue"

    first = await town.tell(path, {"overrides": {"fails": 0, "value": "mended"}})
    second = await town.tell(path)

    assert (first.status_code, second.status_code) == (202, 409)
    assert first.json() == {"id": letter["id"], "executionId": execution}
    assert (await town.service.ended(execution)).output == {"a": "mended"}
    assert (await town.get(f"{LETTERS}/{letter['id']}"))["resolution"] == "REQUEUED"


async def test_a_fixed_letter_gives_what_a_person_says(town: Town):
    execution = await town.run(BROKEN)
    path = f"{LETTERS}/{(await town.letter(execution))['id']}/fix"

    first = await town.tell(path, {"output": {"by": "hand"}})
    second = await town.tell(path, {"output": 1})

    assert (first.status_code, second.status_code) == (202, 409)
    assert (await town.service.ended(execution)).output == {"a": {"by": "hand"}}


async def test_a_fix_goes_through_the_port_it_names_and_through_no_other(town: Town):
    nodes = [{"id": "a", "type": "if", "with": {"condition": "{{ input }}"}}, {"id": "no", "type": "noop"}]
    edges = [{"from": "a", "to": "no", "on": "false"}]
    execution = await town.run({"ropewalk": 1, "name": "branch", "nodes": nodes, "edges": edges})
    path = f"{LETTERS}/{(await town.letter(execution))['id']}/fix"

    refused = [await town.tell(path, {"output": False, "ports": ports}) for ports in (["maybe"], [], ["true", "false"])]
    fixed = await town.tell(path, {"output": False, "ports": ["false"]})

    assert [(each.status_code, each.json()["problems"][0]["field"]) for each in refused] == [(422, "ports")] * 3
    assert fixed.status_code == 202
    assert (await town.service.ended(execution)).output == {"no": None}


async def test_a_discarded_letter_is_closed_once_and_can_still_be_spoken_of(town: Town):
    letter = (await town.letter(await town.run(BROKEN)))["id"]

    first = await town.tell(f"{LETTERS}/{letter}/discard", {"notes": "paid by hand"})
    second = await town.tell(f"{LETTERS}/{letter}/discard")
    note = await town.tell(f"{LETTERS}/{letter}/notes", {"text": "what a pity"})

    assert (first.status_code, second.status_code, note.status_code) == (200, 409, 200)
    assert (first.json()["resolution"], first.json()["notes"]) == ("DISCARDED", "paid by hand")
    assert "what a pity" in note.json()["notes"]
    assert first.json()["reviewedBy"].startswith("key:")
    rows = await audit.listed(town.backend.store, "default", audit.Filter(object=letter))
    assert [row.verb for row in rows] == ["note", "discard"]


VERBS = {
    "requeue": {"overrides": {}},
    "fix": {"output": 1},
    "discard": {"notes": "x"},
    "notes": {"text": "x"},
}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_letter_of_another_answers_like_one_that_is_not_there(town: Town, verb: str):
    await town.workspace("acme")
    await town.run(BROKEN, workspace="acme")
    (letter,) = await listed(town, "workspaceId=acme")
    stranger, viewer = await town.key(Role.ADMIN), await town.key(Role.VIEWER, "acme")

    theirs, absent, looked = [
        await town.tell(f"{LETTERS}/{each}/{verb}", VERBS[verb], token)
        for each, token in ((letter["id"], stranger), (UNKNOWN_ID, stranger), (letter["id"], viewer))
    ]

    assert (theirs.status_code, absent.status_code, looked.status_code) == (404, 404, 403)
    assert (await town.ask("GET", f"{LETTERS}/{letter['id']}", stranger)).status_code == 404
    assert (await listed(town, "workspaceId=acme")) == [letter]


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("requeue", {"overrides": []}),
        ("requeue", {"other": 1}),
        ("fix", {}),
        ("fix", {"output": 1, "ports": [""]}),
        ("fix", {"output": 1, "ports": "left"}),
        ("fix", {"output": 1, "ports": ["x"] * 101}),
        ("discard", {"notes": ""}),
        ("discard", {"notes": "x" * 4001}),
        ("notes", {"text": "   "}),
        ("notes", {"text": 7}),
    ],
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(town: Town, verb: str, body: Any):
    letter = await town.letter(await town.run(BROKEN))

    answer = await town.tell(f"{LETTERS}/{letter['id']}/{verb}", body)

    assert answer.status_code == 422
    assert answer.json()["problems"]
    told = await town.get(f"{LETTERS}/{letter['id']}")
    assert {**told, "errorDetail": None} == letter


# Who sees what


async def test_whom_one_workflow_is_shared_with_sees_its_letters_alone(town: Town):
    shared, hidden = await town.run(BROKEN), await town.run(OTHER)
    one, other = await town.letter(shared), await town.letter(hidden)
    guest = await town.shared_with(one["workflowId"], Role.OPERATOR)
    here = "workspaceId=default"

    groups = await town.get(f"{LETTERS}/groups?{here}", guest)

    assert await executions_of(town, here, guest) == [shared]
    assert await executions_of(town, f"{here}&executionId={shared}", guest) == [shared]
    assert await executions_of(town, f"{here}&executionId={hidden}", guest) == []
    assert await executions_of(town, f"{here}&resolution=PENDING&node=b", guest) == []
    assert await executions_of(town, f"{here}&idPart={one['id'][-8:]}", guest) == [shared]
    assert await executions_of(town, f"{here}&idPart={other['id'][-8:]}", guest) == []
    assert [each["fingerprint"] for each in groups["items"]] == [one["fingerprint"]]
    assert (await town.ask("GET", f"{LETTERS}/{other['id']}?{here}", guest)).status_code == 404
    for verb in ("requeue", "discard"):
        answer = await town.tell(f"{LETTERS}/{verb}?{here}", {"fingerprint": other["fingerprint"]}, guest)
        assert answer.status_code == 404
    done = await town.tell(f"{LETTERS}/discard?{here}", {"fingerprint": one["fingerprint"]}, guest)
    assert done.json()["counts"] == {"DISCARDED": 1}


async def test_inputs_are_for_those_who_may_read_them(town: Town):
    letter = await town.letter(await town.run(flow(act("a", "{{ input }}", fails=9, retry=ONCE)), "s3cret"))
    viewer = await town.key(Role.VIEWER)

    for path in (LETTERS, f"{LETTERS}/{letter['id']}", f"{LETTERS}/groups"):
        assert "s3cret" not in (await town.ask("GET", path, viewer)).text

    (seen,) = await listed(town, token=viewer)
    assert (seen["inputs"], seen["payloads"]) == (None, False)


@pytest.mark.parametrize(
    "query",
    [
        "resolution=GONE",
        "workflowId=%00",
        "node=%00",
        "fingerprint=zz",
        "idPart=x%25y",
        "from=now",
        "limit=0",
        "cursor=x",
        "to=1",
    ],
)
async def test_a_list_is_not_asked_for_in_vain(town: Town, query: str):
    answer = await town.ask("GET", f"{LETTERS}?{query}")

    assert answer.status_code == 422
    assert answer.json()["problems"][0]["field"].startswith("query.")


# Many letters


async def many(town: Town, verb: str, **body: Any) -> dict[str, Any]:
    answer = await town.tell(f"{LETTERS}/{verb}", body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def broken(town: Town, document: dict[str, Any], count: int) -> str:
    """So many letters that failed alike; their fingerprint."""
    executions = [await town.run(document) for _ in range(count)]
    return str((await town.letter(executions[0]))["fingerprint"])


async def test_many_are_tried_again_in_steps_and_each_once(town: Town):
    alike = await broken(town, BROKEN, 5)
    await town.run(OTHER)

    first = await many(town, "requeue", fingerprint=alike, limit=2)
    for letter in first["letters"]:
        await town.service.ended(letter["executionId"])
    second = await many(town, "requeue", fingerprint=alike, limit=2, cursor=first["next"])
    last = await many(town, "requeue", fingerprint=alike, limit=2, cursor=second["next"])

    assert [each["counts"] for each in (first, second, last)] == [{"REQUEUED": 2}, {"REQUEUED": 2}, {"REQUEUED": 1}]
    assert last["next"] is None
    ids = [letter["id"] for step in (first, second, last) for letter in step["letters"]]
    assert len(dict.fromkeys(ids)) == 5
    assert {(await town.get(f"{LETTERS}/{each}"))["resolution"] for each in ids} == {"REQUEUED"}
    assert [each["resolution"] for each in await listed(town, "node=b")] == ["PENDING"]


async def test_it_is_enough_when_so_many_have_failed_again_over_all_steps(town: Town):
    alike = await broken(town, BROKEN, 6)
    about = {"fingerprint": alike, "stopAfterFailures": 3}

    first = await many(town, "requeue", limit=2, **about)
    second = await many(town, "requeue", limit=4, cursor=first["next"], **about)

    assert (first["counts"], first["stopped"]) == ({"REQUEUED": 2, "FAILED": 2}, False)
    assert (second["counts"], second["stopped"], second["next"]) == ({"REQUEUED": 1, "FAILED": 1}, True, None)


async def test_many_that_are_mended_go_on(town: Town):
    alike = await broken(town, MENDED, 3)

    step = await many(town, "requeue", fingerprint=alike, rate=100, stopAfterFailures=1)

    assert (step["counts"], step["stopped"], step["next"]) == ({"REQUEUED": 3}, False, None)
    states = [(await town.service.ended(each["executionId"])).state for each in step["letters"]]
    assert {str(each) for each in states} == {"SUCCESS"}


async def test_a_step_ends_in_time_and_the_next_goes_on(town: Town, monkeypatch: pytest.MonkeyPatch):
    alike = await broken(town, BROKEN, 2)
    monkeypatch.setattr(api, "STEP_SECONDS", 0.2)

    step = await many(town, "requeue", fingerprint=alike, rate=0.01)

    assert step["counts"] == {"REQUEUED": 1}
    assert step["next"] is not None


async def test_many_are_discarded_with_a_note_each(town: Town):
    alike = await broken(town, BROKEN, 3)

    step = await many(town, "discard", fingerprint=alike, notes="void")

    assert (step["counts"], step["next"]) == ({"DISCARDED": 3}, None)
    assert {each["notes"] for each in await listed(town)} == {"void"}
    assert (await many(town, "discard", fingerprint=alike))["counts"] == {}


@pytest.mark.parametrize("verb", ["requeue", "discard"])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"fingerprint": "x y"},
        {"fingerprint": "ab", "limit": 0},
        {"fingerprint": "ab", "limit": 201},
        {"fingerprint": "ab", "cursor": "abc"},
        {"fingerprint": "ab", "unknown": 1},
        {"fingerprint": "ab", "rate": 0},
        {"fingerprint": "ab", "stopAfterFailures": 0},
    ],
)
async def test_many_are_not_touched_by_a_request_that_makes_no_sense(town: Town, verb: str, body: Any):
    answer: httpx2.Response = await town.tell(f"{LETTERS}/{verb}", body)

    assert answer.status_code == 422
    assert answer.json()["problems"]


async def test_a_cursor_is_good_for_its_own_letters_alone(town: Town):
    alike = await broken(town, BROKEN, 2)
    step = await many(town, "requeue", fingerprint=alike, limit=1)

    for verb, fingerprint in (("discard", alike), ("requeue", "abc")):
        answer = await town.tell(f"{LETTERS}/{verb}", {"fingerprint": fingerprint, "cursor": step["next"]})
        assert answer.status_code == 422


async def test_the_same_is_told_of_letters_on_a_shared_store(database: str):
    async with town_on(database) as town:
        alike = await broken(town, BROKEN, 3)
        await town.run(OTHER)
        letter = (await listed(town, f"fingerprint={alike}"))[0]
        guest = await town.shared_with(letter["workflowId"], Role.VIEWER)

        assert len(await listed(town, "workspaceId=default&from=2020-01-01T00:00:00Z", guest)) == 3
        assert len((await town.get(f"{LETTERS}/groups?workspaceId=default", guest))["items"]) == 1
        assert len((await town.get(f"{LETTERS}/groups"))["items"]) == 2
        assert (await many(town, "requeue", fingerprint=alike, limit=2))["counts"] == {"REQUEUED": 2}
        found = await town.get(f"{EXECUTIONS}?state=FAILED")
        assert len(found["items"]) <= 4
