"""Executions over HTTP."""

from ropewalk.access.rights import Role
from tests.api.house import House

ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}


async def test_a_start_is_accepted_and_comes_to_its_end(house: House):
    workflow = await house.save(ONE)

    answer = await house.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})

    assert answer.status_code == 202
    ended = await house.service.ended(answer.json()["executionId"])
    assert ended.state == "SUCCESS"


async def test_a_viewer_may_not_start(house: House):
    workflow, viewer = await house.save(ONE), await house.key(Role.VIEWER)

    answer = await house.ask("POST", "/workflow/executions/start", viewer, json={"workflowDefinitionId": workflow})

    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"


async def test_lists_go_on_where_a_page_ended(house: House):
    workflow = await house.save(ONE)
    started = [await house.service.start(await house.service.engine.memory.version(workflow, 1)) for _ in range(3)]

    first = (await house.ask("GET", "/workflow/executions?limit=2")).json()
    second = (await house.ask("GET", f"/workflow/executions?limit=2&cursor={first['next']}")).json()

    assert [each["id"] for each in (*first["items"], *second["items"])] == started[::-1]
    assert second["next"] is None
