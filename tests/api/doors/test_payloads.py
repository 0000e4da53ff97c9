"""What only readers of payloads may see is in no answer to another caller, wherever it was put."""

import asyncio

import pytest

from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.store import acl, workspaces
from tests.api.asking import PATIENCE, ask
from tests.api.house import API, House

SECRET = "a-secret-of-the-house"
SECRETIVE = {
    "ropewalk": 1,
    "name": "secretive",
    "vars": {"v": "public"},
    "concurrencyKey": "{{ input }}",
    "nodes": [
        {"id": "made", "type": "set", "with": {"values": {"x": "{{ input }}"}}},
        {
            "id": "bad",
            "type": "http.request",
            "with": {"url": "http://127.0.0.1/", "headers": {"X-Key": "{{ input }}"}},
        },
        {"id": "late", "type": "wait", "with": {"event": "order.paid", "filter": f"item.code == '{SECRET}'"}},
        {"id": "each", "type": "noop", "forEach": "{{ [input] }}"},
        {"id": "ask", "type": "approval", "with": {"title": "Pay {{ input }}?", "details": {"of": "{{ input }}"}}},
    ],
    "edges": [{"from": "made", "to": "ask"}, {"from": "each", "to": "ask"}],
}
BUSY = {"ropewalk": 1, "name": "busy", "nodes": [{"id": "now", "type": "delay", "with": {"for": "9s"}}]}
CHILD = {"ropewalk": 1, "name": "child", "nodes": [{"id": "ask", "type": "approval", "with": {"title": SECRET}}]}
PARENT = {"ropewalk": 1, "name": "parent", "nodes": [{"id": "c", "type": "subworkflow", "with": {"workflow": "child"}}]}
READS = ("", "/nodes", "/events", "/runs", "/explain", "/explain?node=ask", "/explain?node=late", "/stream?after=0")


async def waiting(house: House, workflow: str, node: str, value: str | None = None) -> str:
    """An execution that has come to the wait of this node."""
    service = house.service
    version = await service.engine.versions.version(workflow, 1)
    execution = await service.start(version, value, {"v": value} if value else None)
    async for _, event in service.follow(execution):
        if type(event).__name__ == "RunWaiting" and getattr(event, "node", None) == node:
            break
    return execution


async def read(house: House, path: str, token: str) -> str:
    """What a caller is told there, a stream as far as it has come."""
    reply = await ask(house.app, "GET", f"{API}{path}", [("Authorization", f"Bearer {token}")])
    assert reply.status == 200, path
    return reply.body.decode()


async def everything(house: House, executions: list[str], token: str) -> dict[str, str]:
    """All that can be read of these executions and what came of them."""
    paths = [f"/workflow/executions/{each}{more}" for each in executions for more in READS]
    paths += [f"/workflow/queue/{each}" for each in executions]
    paths += ["/workflow/executions", "/workflow/dead-letters", "/workflow/dead-letters/groups", "/breakers"]
    for each in executions:
        listed = (await house.ask("GET", f"/workflow/executions/{each}/runs")).json()["items"]
        paths += [f"/workflow/runs/{run['id']}?executionId={each}" for run in listed]
    return {path: await read(house, path, token) for path in paths}


@pytest.mark.parametrize(("role", "is_told"), [(Role.VIEWER, False), (Role.OPERATOR, True)])
async def test_payloads_are_in_no_answer_to_who_may_not_read_them(house: House, role: Role, is_told: bool):
    workflow = await house.save(SECRETIVE)
    first = await waiting(house, workflow, "ask", SECRET)
    second = await house.service.start(await house.service.engine.versions.version(workflow, 1), SECRET)
    await house.service.signal(first, "told", SECRET)

    told = await everything(house, [first, second], await house.key(role))

    assert any(SECRET in text for text in told.values()) is is_told, [path for path in told if SECRET in told[path]]


async def shared(house: House, workflow: str) -> str:
    """A token of a member of another workspace with whom this workflow is shared."""
    await house.workspace("elsewhere")
    token, store = await house.key(Role.VIEWER, "elsewhere"), house.backend.store
    async with store.transaction() as tx:
        subject = f"{keys.SUBJECT}{token.split('_')[1]}"
        await acl.put(tx, acl.Share("default", workflow, subject, Role.OPERATOR, store.now(), "test"))
    return token


async def test_whom_a_parent_is_shared_with_is_told_nothing_of_what_its_child_waits_for(house: House):
    await house.save(CHILD)
    parent = await house.save(PARENT)
    execution = await waiting(house, parent, "c")
    path = f"/workflow/executions/{execution}/explain?workspaceId=default"
    async with asyncio.timeout(PATIENCE):
        while SECRET not in await read(house, path, house.root):
            continue

    assert SECRET not in await read(house, path, await shared(house, parent))


async def test_a_viewer_with_whom_a_parent_is_shared_sees_no_payload_of_its_child(house: House):
    await house.save({**CHILD, "nodes": [{**CHILD["nodes"][0], "with": {"title": "{{ input }}"}}]})
    parent = await house.save(
        {**PARENT, "nodes": [{**PARENT["nodes"][0], "with": {"workflow": "child", "input": SECRET}}]}
    )
    execution, viewer, store = await waiting(house, parent, "c"), await house.key(Role.VIEWER), house.backend.store
    async with store.transaction() as tx:
        subject = f"{keys.SUBJECT}{viewer.split('_')[1]}"
        await acl.put(tx, acl.Share("default", parent, subject, Role.OPERATOR, store.now(), "test"))
    path = f"/workflow/executions/{execution}/explain"
    async with asyncio.timeout(PATIENCE):
        while SECRET not in await read(house, path, house.root):
            continue

    told = await read(house, path, viewer)

    assert "waits for approval" in told
    assert SECRET not in told


async def test_whom_a_workflow_is_shared_with_is_not_told_who_else_has_the_slots(house: House):
    async with house.backend.store.transaction() as tx:
        await workspaces.override_slots(tx, "default", 1)
    holder = await waiting(house, await house.save(BUSY), "now")
    workflow = await house.save(CHILD)
    execution = await house.service.start(await house.service.engine.versions.version(workflow, 1))
    path = f"/workflow/executions/{execution}/explain?workspaceId=default"

    told = await read(house, path, await shared(house, workflow))

    assert "CAPACITY" in told
    assert holder not in told
