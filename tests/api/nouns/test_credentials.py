"""Credentials over HTTP: written and never read; used by those who may, and by no other."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk.access.rights import Right, Role
from ropewalk.nodes.credential_types import TYPES
from tests.api.house import House, opened

SECRET = "s3cret-canary-0815"
SHOP = {
    "name": "shop", "type": "http.basic", "values": {"username": "shop", "password": SECRET},
    "hosts": ["api.example.org"],
}  # fmt: skip
MAIL = {
    "name": "mail", "type": "smtp", "values": {"host": "127.0.0.1", "port": 9, "tls": "none", "password": SECRET},
}  # fmt: skip


def mailing(name: str = "mailing", credential: str = "mail") -> dict:
    node = {"id": "a", "type": "email.send", "credentials": credential, "with": {"to": "a@example.org"}}
    return {"ropewalk": 1, "name": name, "nodes": [node]}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(str(tmp_path / "ropewalk.db")) as house:
        yield house


async def made(house: House, body: dict = SHOP) -> dict:
    answer = await house.ask("POST", "/credentials", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def guest(house: House, workflow: str, role: str = "editor") -> tuple[str, str]:
    """A token, and the subject, of a caller with whom one workflow is shared."""
    token = await house.key(Role.RUNNER, "elsewhere")
    subject = f"key:{token.split('_')[1]}"
    await house.ask("PUT", f"/workflow/definitions/{workflow}/acl", json={"subject": subject, "role": role})
    return token, subject


async def test_no_answer_has_the_secret(house: House):
    await made(house)
    asked = [
        ("GET", "/credentials", None), ("GET", "/credentials/shop", None), ("POST", "/credentials", SHOP),
        ("PATCH", "/credentials/shop", {"values": {"password": SECRET}}), ("POST", "/credentials/shop/test", {}),
        ("PATCH", "/credentials/shop", {"values": {"password": SECRET, "nothing": SECRET}}),
        ("POST", "/credentials", SHOP | {"name": "other", "values": {"username": 5, "password": SECRET}}),
        ("POST", "/credentials", SHOP | {"name": SECRET + "/"}), ("GET", "/activity", None),
    ]  # fmt: skip

    answers = [(await house.ask(method, path, json=body)).text for method, path, body in asked]

    assert not [text for text in answers if SECRET in text.replace(SECRET + "/", "")]
    assert all(answers)


async def test_a_credential_is_shown_with_what_is_no_secret_and_who_uses_it(house: House):
    await made(house, MAIL)
    workflow = await house.save(mailing())

    shown = (await house.ask("GET", "/credentials/mail")).json()

    assert shown["values"] == {"host": "127.0.0.1", "port": 9, "tls": "none"}
    assert shown["secrets"] == {"password": "stored"}
    assert shown["usedBy"] == [{"id": workflow, "name": "mailing", "version": 1}]
    assert (shown["revision"], shown["lastUsedAt"]) == (1, None)


async def test_credentials_are_listed_by_name_page_after_page(house: House):
    for name in ("c", "a", "b"):
        await made(house, SHOP | {"name": name})
    first = (await house.ask("GET", "/credentials?limit=2")).json()
    second = (await house.ask("GET", f"/credentials?limit=2&cursor={first['next']}")).json()

    assert [each["name"] for each in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next"] is None


async def test_a_removed_credential_is_gone_and_a_name_is_given_once(house: House):
    await made(house)
    taken = await house.ask("POST", "/credentials", json=SHOP)
    gone = [(await house.ask("DELETE", "/credentials/shop")).json()["changed"] for _ in range(2)]

    assert (taken.status_code, gone) == (409, [True, False])
    assert (await house.ask("GET", "/credentials/shop")).status_code == 404
    assert (await house.ask("PATCH", "/credentials/shop", json={})).status_code == 404
    assert (await house.ask("POST", "/credentials/shop/test", json={})).status_code == 404
    assert (await house.ask("PUT", "/credentials/shop/acl", json={"subject": "user:ann"})).status_code == 404


async def test_every_type_tells_its_fields_and_which_are_secret(house: House):
    found = (await house.ask("GET", "/credential-types")).json()["items"]

    assert [each["name"] for each in found] == list(TYPES)
    for each in found:
        fields = each["fields"]["properties"]
        # A file on the worker's disk is opened by its path alone.
        has_secret = any(field.get("writeOnly") for field in fields.values())
        assert has_secret is (each["name"] != "sqlite"), each["name"]
        assert all(field["description"] and field["title"] for field in fields.values()), each["name"]


async def test_what_is_done_with_credentials_is_in_the_audit_log_without_a_secret(house: House):
    await made(house)
    await house.ask("PATCH", "/credentials/shop", json={"values": {"username": "bank"}})
    await house.ask("PUT", "/credentials/shop/acl", json={"subject": "user:ann"})
    await house.ask("DELETE", "/credentials/shop/acl?subject=user:ann")
    await house.ask("DELETE", "/credentials/shop")

    answer = await house.ask("GET", "/activity")

    assert [each["verb"] for each in reversed(answer.json()["items"])][-5:] == [
        "create-credential", "change-credential", "share-credential", "unshare-credential", "remove-credential",
    ]  # fmt: skip
    assert SECRET not in answer.text


# Who may use one


async def test_a_caller_who_may_not_use_credentials_saves_no_workflow_that_names_one(house: House):
    await made(house, MAIL)
    editor = await house.key(Role.EDITOR)
    writer = await house.key(Role.EDITOR, scopes=(Right.READ, Right.EDIT))

    allowed = await house.ask("POST", "/workflow/definitions", editor, json=mailing("one"))
    refused = await house.ask("POST", "/workflow/definitions", writer, json=mailing("two"))
    verdict = await house.ask("POST", "/workflow/definitions/validate", writer, json=mailing("two"))

    assert (allowed.status_code, refused.status_code) == (201, 422)
    assert refused.json()["problems"][0]["field"] == "nodes[0].credentials"
    assert "there is no credential 'mail' that you may use here" in refused.text
    assert verdict.json()["valid"] is False


async def test_a_credential_is_not_shared_with_the_workflow_that_names_it(house: House):
    await house.workspace("elsewhere")
    await made(house, MAIL)
    workflow = await house.save(mailing())
    token, subject = await guest(house, workflow)
    etag = (await house.ask("GET", f"/workflow/definitions/{workflow}")).headers["etag"]
    changed = mailing() | {"description": "another"}
    path = f"/workflow/definitions/{workflow}/versions?workspaceId=default"

    before = await house.ask("POST", path, token, json=changed, headers={"If-Match": etag})
    await house.ask("PUT", "/credentials/mail/acl", json={"subject": subject})
    after = await house.ask("POST", path, token, json=changed, headers={"If-Match": etag})

    assert before.status_code == 422
    assert "the credential 'mail' is out of reach" in before.text
    assert after.status_code == 201, after.text


async def test_an_execution_that_a_guest_starts_uses_only_what_is_shared_with_the_guest(house: House):
    await house.workspace("elsewhere")
    await made(house, MAIL)
    workflow = await house.save(mailing())
    token, subject = await guest(house, workflow, "operator")

    async def error() -> str:
        start = {"workflowDefinitionId": workflow}
        answer = await house.ask("POST", "/workflow/executions/start?workspaceId=default", token, json=start)
        ended = await house.service.ended(answer.json()["executionId"])
        return str(ended.error)

    assert "the credential 'mail' is out of reach" in await error()
    await house.ask("PUT", "/credentials/mail/acl", json={"subject": subject})
    assert "out of reach" not in await error()
    await house.ask("DELETE", f"/credentials/mail/acl?subject={subject}")
    assert "the credential 'mail' is out of reach" in await error()


async def test_who_may_use_a_credential_is_listed(house: House):
    await made(house)
    for subject in ("user:bob", "user:ann", "user:ann"):
        await house.ask("PUT", "/credentials/shop/acl", json={"subject": subject})

    found = (await house.ask("GET", "/credentials/shop/acl")).json()["items"]

    assert [each["subject"] for each in found] == ["user:ann", "user:bob"]


async def test_credentials_of_another_workspace_do_not_exist(house: House):
    await house.workspace("elsewhere")
    await made(house)
    foreign = await house.key(Role.ADMIN, "elsewhere")

    answers = [await house.ask("GET", path, foreign) for path in ("/credentials/shop", "/credentials/absent")]

    assert [each.status_code for each in answers] == [404, 404]
    assert (await house.ask("GET", "/credentials", foreign)).json()["items"] == []


async def test_the_master_key_is_rotated_by_root_alone(house: House):
    await made(house)

    assert (await house.ask("POST", "/credentials/rotate", await house.key(Role.ADMIN), json={})).status_code == 403
    assert (await house.ask("POST", "/credentials/rotate", json={})).json() == {"rewrapped": 0}
