"""A workflow is named by its id or its name, wherever one is named."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from ropewalk.access.rights import Role
from tests.api.house import House, opened
from tests.api.stories import BATCH, EXECUTIONS, START

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEFINITIONS = "/workflow/definitions"
NAME = "refund the order ✓"
FAILING = {"ropewalk": 1, "name": NAME, "nodes": [{"id": "a", "type": "fail", "with": {"message": "no"}}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One for all the tests here: a workflow with an execution that failed, and another that no test asks about."""
    async with opened(str(tmp_path_factory.mktemp("house") / "ropewalk.db")) as house:
        await house.service.start(await house.service.save({"ropewalk": 1, "name": "other", "nodes": []}))
        yield house


async def failed(house: House) -> str:
    version = await house.service.save(FAILING)
    execution = await house.service.start(version)
    await house.service.ended(execution)
    return version.workflow


@pytest.mark.parametrize("body", [{"workflowDefinitionId": NAME}, {"starts": [{"workflowDefinitionId": NAME}]}])
async def test_a_start_takes_a_name(house: House, body: Any):
    await failed(house)

    answer = await house.ask("POST", BATCH if "starts" in body else START, json=body)

    assert answer.status_code == 202


@pytest.mark.parametrize("path", [EXECUTIONS, "/workflow/dead-letters"])
async def test_a_list_is_narrowed_by_a_name_as_by_an_id(house: House, path: str):
    workflow = await failed(house)

    by_id, by_name = [
        (await house.ask("GET", path, params={"workflowId": each})).json()["items"] for each in (workflow, NAME)
    ]

    assert by_name
    assert by_name == by_id
    assert {each["workflowId"] for each in by_name} == {workflow}


@pytest.mark.parametrize("path", [EXECUTIONS, "/workflow/dead-letters"])
async def test_a_list_of_a_workflow_that_is_not_there_says_so(house: House, path: str):
    answer = await house.ask("GET", path, params={"workflowId": "refnud"})

    assert answer.status_code == 404
    assert "refnud" in answer.json()["detail"]


async def test_the_first_api_takes_names_too(house: House):
    workflow = await failed(house)

    async with house.client(house.root) as client:
        found = (await client.get("/v1/WorkflowExecution", params={"workflowId": NAME})).json()

    assert {each["workflowId"] for each in found} == {workflow}


@pytest.mark.parametrize("part", ["", "/versions", "/versions/1", "/diff?from=1&to=1", "/acl"])
async def test_an_address_takes_a_name(house: House, part: str):
    workflow = await failed(house)

    by_id, by_name = [await house.ask("GET", f"{DEFINITIONS}/{each}{part}") for each in (workflow, NAME)]

    assert by_name.status_code == 200
    assert by_name.json() == by_id.json()


async def test_a_name_that_is_the_id_of_another_workflow_means_that_one(house: House):
    workflow = await house.save({"ropewalk": 1, "name": "first", "nodes": []})
    await house.save({"ropewalk": 1, "name": workflow, "nodes": []})
    call = {"id": "a", "type": "subworkflow", "with": {"workflow": workflow}}
    caller = await house.service.save({"ropewalk": 1, "name": "caller", "nodes": [call]})
    execution = await house.service.start(caller)
    await house.service.ended(execution)

    found = (await house.ask("GET", f"{DEFINITIONS}/{workflow}")).json()
    children = (await house.ask("GET", EXECUTIONS, params={"workflowId": workflow})).json()["items"]

    assert (found["id"], found["name"]) == (workflow, "first")
    assert [each["parentExecutionId"] for each in children] == [execution]


async def test_a_name_opens_nothing_that_its_id_does_not(house: House):
    await failed(house)
    await house.workspace("elsewhere")
    stranger = await house.key(Role.ADMIN, "elsewhere")

    answers = [await house.ask("GET", EXECUTIONS, stranger, params={"workflowId": each}) for each in (NAME, "absent")]

    assert [each.status_code for each in answers] == [404, 404]
