"""Definitions over HTTP: saved, published, compared, archived, and never overwritten unseen."""

import asyncio
from importlib.metadata import EntryPoint
from typing import Any

import httpx2
import pytest

from ropewalk.access.rights import Role
from ropewalk.nodes.base import ENTRY_POINTS
from ropewalk.store import acl, audit
from tests.api.house import House, opened

PATH = "/workflow/definitions"
ONE: dict[str, Any] = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}
TWO: dict[str, Any] = {**ONE, "nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop"}]}
YAML = {"Content-Type": "application/yaml"}
BAD_YAML = "ropewalk: 1\nname: one\nnodes:\n  - { id: a, type: nop }\n"


async def created(house: House, document: Any = ONE, **query: Any) -> httpx2.Response:
    answer = await house.ask("POST", PATH, json=document, params=query)
    assert answer.status_code == 201, answer.text
    return answer


async def saved(house: House, workflow: str, document: Any, etag: str | None, token: str | None = None,
                **query: Any) -> httpx2.Response:  # fmt: skip
    headers = {} if etag is None else {"If-Match": etag}
    return await house.ask("POST", f"{PATH}/{workflow}/versions", token, json=document, headers=headers, params=query)


def fields(answer: httpx2.Response) -> list[str]:
    return [each["field"] for each in answer.json()["problems"]]


async def verbs(house: House) -> list[str]:
    return [entry.verb for entry in (await audit.listed(house.backend.store, "default"))[::-1]][1:]


# Saving


async def test_a_new_definition_is_version_1_and_can_be_read_with_its_etag(house: House):
    answer = await created(house)

    read = await house.ask("GET", f"{PATH}/{answer.json()['id']}")
    assert answer.json()["version"] == 1
    assert read.headers["etag"] == answer.headers["etag"] == f'"{answer.json()["hash"]}"'
    assert (read.json()["document"], read.json()["published"], read.json()["latest"]) == (ONE, None, 1)


@pytest.mark.parametrize(("publish", "published"), [("true", 1), ("false", None)])
async def test_it_is_published_if_that_is_asked_for(house: House, publish: str, published: int | None):
    workflow = (await created(house, publish=publish)).json()["id"]

    assert (await house.ask("GET", f"{PATH}/{workflow}")).json()["published"] == published


async def test_a_name_that_is_taken_is_refused_also_by_an_archived_one(house: House):
    workflow = (await created(house)).json()["id"]
    await house.ask("DELETE", f"{PATH}/{workflow}")

    again = await house.ask("POST", PATH, json=TWO)

    assert again.status_code == 409


async def test_yaml_is_saved_as_the_same_document(house: House):
    text = "ropewalk: 1\nname: one\nnodes: [{ id: a, type: noop }]\n"

    answer = await house.ask("POST", PATH, content=text, headers=YAML)

    assert answer.status_code == 201
    assert (await house.ask("GET", f"{PATH}/{answer.json()['id']}")).json()["document"] == ONE


async def test_what_is_wrong_is_told_with_its_path_and_in_yaml_its_line(house: House):
    answer = await house.ask("POST", PATH, content=BAD_YAML, headers=YAML)

    assert answer.status_code == 422
    assert answer.json()["problems"] == [
        {"field": "nodes[0].type", "message": "line 4: unknown node type 'nop'"},
    ]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {"Content-Type": "application/json"}, 400),
        (b'{"a": 1, "a": 2}', {"Content-Type": "application/json"}, 400),
        (b"\xff", YAML, 400),
        (b"a: *nowhere", YAML, 422),
        (b"[" * 100, YAML, 422),
        (b"null", {"Content-Type": "application/json"}, 422),
        (b"", YAML, 422),
        (b"name: x", {"Content-Type": "text/plain"}, 415),
        (b"name: x", {}, 415),
        (b" " * (4 * 1024 * 1024 + 1), YAML, 413),
    ],
)
async def test_what_is_no_document_is_refused_and_nothing_is_kept(house: House, body: bytes, headers: Any, status: int):
    answer = await house.ask("POST", PATH, content=body, headers=headers)

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (await house.ask("GET", PATH)).json()["items"] == []


async def test_a_definition_may_be_larger_than_other_bodies(house: House):
    large = {**ONE, "vars": {"text": "x" * (2 * 1024 * 1024)}}

    assert (await created(house, large)).json()["version"] == 1


# New versions


async def test_a_new_version_is_saved_on_top_of_the_latest(house: House):
    first = await created(house)

    second = await saved(house, first.json()["id"], TWO, first.headers["etag"])

    assert (second.status_code, second.json()["version"]) == (201, 2)
    assert second.headers["etag"] != first.headers["etag"]


async def test_a_save_that_does_not_say_what_it_is_made_from_is_refused(house: House):
    first = await created(house)

    answer = await saved(house, first.json()["id"], TWO, None)

    assert (answer.status_code, fields(answer)) == (428, ["header.if-match"])


@pytest.mark.parametrize("etag", ['"other"', "nonsense", "", 'W/"{hash}"'])
async def test_a_save_on_top_of_another_version_is_refused(house: House, etag: str):
    first = await created(house)
    await saved(house, first.json()["id"], TWO, first.headers["etag"])

    answer = await saved(house, first.json()["id"], {**TWO, "description": "late"}, etag or first.headers["etag"])

    assert (answer.status_code, fields(answer)) == (412, ["header.if-match"])


async def test_of_two_editors_at_once_one_is_told_to_look_again(house: House):
    first = await created(house)
    drafts = [{**ONE, "description": name} for name in ("ann", "ben")]

    answers = await asyncio.gather(*(saved(house, first.json()["id"], each, first.headers["etag"]) for each in drafts))

    assert sorted(answer.status_code for answer in answers) == [201, 412]


async def test_of_two_editors_on_two_servers_one_is_told_to_look_again(database: str):
    async with opened(database) as here, opened(database) as there:
        first = await created(here)
        drafts = [(here, {**ONE, "description": "ann"}), (there, {**ONE, "description": "ben"})]

        answers = await asyncio.gather(
            *(saved(house, first.json()["id"], each, first.headers["etag"]) for house, each in drafts)
        )

        assert sorted(answer.status_code for answer in answers) == [201, 412]


async def test_the_same_content_is_the_version_there_is_also_when_the_answer_was_lost(house: House):
    first = await created(house)
    await saved(house, first.json()["id"], TWO, first.headers["etag"])

    again = await saved(house, first.json()["id"], TWO, first.headers["etag"])

    assert (again.status_code, again.json()["version"]) == (200, 2)


async def test_a_star_saves_on_top_of_any_version(house: House):
    first = await created(house)

    assert (await saved(house, first.json()["id"], TWO, "*")).status_code == 201


async def test_another_name_is_another_workflow(house: House):
    first = await created(house)

    answer = await saved(house, first.json()["id"], {**TWO, "name": "two"}, "*")

    assert (answer.status_code, fields(answer)) == (422, ["name"])


# Publishing and archiving


async def test_starts_take_the_published_version(house: House):
    first = await created(house, publish="true")
    workflow = first.json()["id"]
    await saved(house, workflow, TWO, first.headers["etag"])

    published = await house.ask("POST", f"{PATH}/{workflow}/publish", json={"version": 2})
    again = await house.ask("POST", f"{PATH}/{workflow}/publish", json={"version": 2})

    assert [published.json()["changed"], again.json()["changed"]] == [True, False]
    started = await house.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})
    ended = await house.service.ended(started.json()["executionId"])
    assert ended.state == "SUCCESS"
    listed = (await house.ask("GET", "/workflow/executions")).json()["items"]
    assert [each["version"] for each in listed] == [2]


async def test_a_version_that_is_not_there_cannot_be_published(house: House):
    workflow = (await created(house)).json()["id"]

    assert (await house.ask("POST", f"{PATH}/{workflow}/publish", json={"version": 2})).status_code == 404


async def test_an_archived_workflow_starts_and_publishes_nothing_until_it_is_saved_again(house: House):
    first = await created(house, publish="true")
    workflow = first.json()["id"]

    archived = [await house.ask("POST", f"{PATH}/{workflow}/archive") for _ in range(2)]

    assert [each.json()["changed"] for each in archived] == [True, False]
    start = {"workflowDefinitionId": workflow}
    assert (await house.ask("POST", "/workflow/executions/start", json=start)).status_code == 409
    assert (await house.ask("POST", f"{PATH}/{workflow}/publish", json={"version": 1})).status_code == 409
    assert (await saved(house, workflow, ONE, first.headers["etag"], publish="true")).status_code == 200
    assert (await house.ask("POST", "/workflow/executions/start", json=start)).status_code == 202


async def test_what_was_archived_and_is_saved_by_name_again_is_published_again(house: House):
    workflow = await house.save(ONE)
    await house.ask("DELETE", f"{PATH}/{workflow}")

    await house.save(ONE)

    assert (await house.ask("GET", f"{PATH}/{workflow}")).json()["published"] == 1


async def test_every_change_is_in_the_audit_log_and_what_changes_nothing_is_not(house: House):
    first = await created(house, publish="true")
    workflow = first.json()["id"]
    for _ in range(2):
        await saved(house, workflow, TWO, first.headers["etag"])
        await house.ask("POST", f"{PATH}/{workflow}/publish", json={"version": 2})
    for _ in range(2):
        await house.ask("DELETE", f"{PATH}/{workflow}")

    assert await verbs(house) == ["create-workflow", "publish", "save-version", "publish", "archive"]


# Reading


async def test_lists_go_on_where_a_page_ended_and_leave_archived_ones_out(house: House):
    ids = {name: (await created(house, {**ONE, "name": name})).json()["id"] for name in ("c", "ab", "aa", "d")}
    await house.ask("DELETE", f"{PATH}/{ids['d']}")

    async def names(**query: Any) -> tuple[list[str], str | None]:
        page = (await house.ask("GET", PATH, params=query)).json()
        return [each["name"] for each in page["items"]], page["next"]

    first, cursor = await names(limit=2)

    assert first == ["aa", "ab"]
    assert await names(limit=2, cursor=cursor) == (["c"], None)
    assert (await names(archived="true"))[0] == ["aa", "ab", "c", "d"]
    assert (await names(name="a"))[0] == ["aa", "ab"]


async def test_versions_are_listed_newest_first_and_each_can_be_read(house: House):
    first = await created(house)
    workflow = first.json()["id"]
    await saved(house, workflow, TWO, first.headers["etag"])

    listed = (await house.ask("GET", f"{PATH}/{workflow}/versions", params={"limit": 1})).json()
    rest = (await house.ask("GET", f"{PATH}/{workflow}/versions", params={"cursor": listed["next"]})).json()
    old = await house.ask("GET", f"{PATH}/{workflow}/versions/1")

    assert [each["version"] for each in (*listed["items"], *rest["items"])] == [2, 1]
    assert (old.json()["document"], old.headers["etag"]) == (ONE, first.headers["etag"])
    assert (await house.ask("GET", f"{PATH}/{workflow}/versions/3")).status_code == 404


async def test_the_published_document_is_shown_if_asked_for(house: House):
    first = await created(house, publish="true")
    workflow = first.json()["id"]
    await saved(house, workflow, TWO, first.headers["etag"])

    shown = (await house.ask("GET", f"{PATH}/{workflow}", params={"show": "published"})).json()

    assert (shown["version"], shown["latest"], shown["document"]) == (1, 2, ONE)


async def test_a_diff_says_what_a_version_changes(house: House):
    first = await created(house)
    workflow = first.json()["id"]
    await saved(house, workflow, {**TWO, "timeout": "1m"}, first.headers["etag"])

    answer = await house.ask("GET", f"{PATH}/{workflow}/diff", params={"from": 1, "to": 2})

    assert answer.json() == {
        "changes": [{"field": "timeout", "before": None, "after": "1m"}],
        "nodesAdded": [{"id": "b", "type": "noop"}],
        "nodesRemoved": [],
        "nodesChanged": [],
        "edgesAdded": [],
        "edgesRemoved": [],
    }


# Checking


async def test_a_good_document_is_found_valid_and_not_kept(house: House):
    answer = await house.ask("POST", f"{PATH}/validate", json=ONE)

    assert answer.json()["valid"]
    assert (await house.ask("GET", PATH)).json()["items"] == []


async def test_a_type_that_cannot_be_loaded_is_told_without_what_is_wrong_on_the_server(house: House):
    house.service.types.load_entry_points([EntryPoint("crm.update", "no_crm:Update", ENTRY_POINTS)])

    answer = await house.ask("POST", f"{PATH}/validate", json={**ONE, "nodes": [{"id": "a", "type": "crm.update"}]})

    assert [each["message"] for each in answer.json()["problems"]] == [
        "the node type 'crm.update' cannot be loaded: `ropewalk doctor` says why"
    ]


async def test_a_bad_document_is_told_everything_that_is_wrong_with_it(house: House):
    text = f"{BAD_YAML}edges:\n  - {{ from: a, to: b }}\n"

    answer = await house.ask("POST", f"{PATH}/validate", content=text, headers=YAML)

    found = answer.json()
    assert (answer.status_code, found["valid"], found["hash"]) == (200, False, None)
    assert [(each["field"], each["line"]) for each in found["problems"]] == [("nodes[0].type", 4), ("edges[0].to", 6)]


async def test_text_that_is_no_yaml_is_a_verdict_with_a_line(house: House):
    answer = await house.ask("POST", f"{PATH}/validate", content="name: one\nnodes: [", headers=YAML)

    assert answer.json()["problems"][0]["line"] == 3


# Who may


async def test_a_viewer_reads_and_checks_and_saves_nothing(house: House):
    workflow, viewer = (await created(house)).json()["id"], await house.key(Role.VIEWER)

    assert (await house.ask("GET", f"{PATH}/{workflow}", viewer)).status_code == 200
    assert (await house.ask("POST", f"{PATH}/validate", viewer, json=ONE)).status_code == 200
    assert (await house.ask("POST", PATH, viewer, json=TWO)).status_code == 403
    assert (await saved(house, workflow, TWO, "*", viewer)).status_code == 403
    assert (await house.ask("DELETE", f"{PATH}/{workflow}", viewer)).status_code == 403


async def test_what_is_shared_is_all_that_is_seen(house: House):
    await house.workspace("theirs")
    shared, hidden = [(await created(house, {**ONE, "name": name})).json()["id"] for name in ("shared", "hidden")]
    editor = await house.key(Role.EDITOR, "theirs")
    subject = f"key:{editor.split('_')[1]}"
    async with house.backend.store.transaction() as tx:
        await acl.put(tx, acl.Share("default", shared, subject, Role.EDITOR, 1, "test"))

    async def ask(method: str, path: str, **more: Any) -> httpx2.Response:
        return await house.ask(method, path, editor, params={"workspaceId": "default"}, **more)

    assert [each["id"] for each in (await ask("GET", PATH)).json()["items"]] == [shared]
    assert (await ask("GET", f"{PATH}/{hidden}")).status_code == 404
    assert (await ask("POST", PATH, json=TWO)).status_code in (403, 404)
    answer = await ask("POST", f"{PATH}/{shared}/versions", json={**TWO, "name": "shared"}, headers={"If-Match": "*"})
    assert answer.status_code == 201


async def test_a_foreign_definition_does_not_exist(house: House):
    await house.workspace("theirs")
    workflow, foreign = (await created(house)).json()["id"], await house.key(Role.ADMIN, "theirs")

    answers = [await house.ask("GET", f"{PATH}/{name}", foreign) for name in (workflow, "absent")]

    assert [answer.status_code for answer in answers] == [404, 404]
