"""Workflows by the client: saved, judged, published, and started by their name."""

import asyncio

import pytest

from ropewalk.client import AsyncClient
from ropewalk.core.errors import Conflict, InvalidDefinition, InvalidTransition
from tests.client.samples import ONE


async def test_a_workflow_is_created_started_by_its_name_and_gives_its_result(client: AsyncClient):
    await client.create(ONE, publish=True)

    execution = await client.start("one", {"name": "you"}, vars={"word": "Bye"})

    assert await execution.result() == "Bye you"


async def test_a_document_is_saved_and_started_in_one_go(client: AsyncClient):
    first = await client.start(ONE, {"name": "you"})
    second = await client.start({**ONE, "output": "other"})

    assert (await first.result(), await second.result()) == ("Hello you", "other")


async def test_a_name_is_taken_once(client: AsyncClient):
    await client.create(ONE)

    with pytest.raises(Conflict):
        await client.create(ONE)


async def test_the_same_content_is_the_same_version(client: AsyncClient):
    first = await client.save(ONE, publish=True)

    assert await client.save(ONE, publish=True) == first
    assert (await client.save({**ONE, "description": "more"}))["version"] == 2
    assert [each["version"] async for each in client.versions(first["id"])] == [2, 1]


async def test_a_save_on_top_of_what_was_changed_meanwhile_is_refused(client: AsyncClient):
    base = await client.save(ONE)
    await client.save({**ONE, "description": "theirs"})

    with pytest.raises(Conflict):
        await client.save({**ONE, "description": "mine"}, on=base["hash"])

    assert (await client.definition("one"))["document"]["description"] == "theirs"


async def test_many_who_save_at_once_all_get_a_version(client: AsyncClient):
    await client.save(ONE)
    saved = await asyncio.gather(*(client.save({**ONE, "description": str(number)}) for number in range(3)))

    assert sorted(each["version"] for each in saved) == [2, 3, 4]


async def test_a_version_is_published_and_a_workflow_archived(client: AsyncClient):
    saved = await client.save(ONE)
    with pytest.raises(InvalidTransition):
        await client.start("one")

    assert (await client.publish(saved["id"], 1))["changed"]
    assert not (await client.publish(saved["id"], 1))["changed"]
    assert (await client.archive(saved["id"]))["changed"]


async def test_a_document_is_judged_without_being_stored(client: AsyncClient):
    good, bad = await client.validate(ONE), await client.validate({**ONE, "nodes": [{"id": "a", "type": "nosuch"}]})

    assert (good["valid"], bad["valid"]) == (True, False)
    assert bad["problems"][0]["field"] == "nodes[0].type"
    assert [each async for each in client.definitions()] == []


async def test_what_is_wrong_with_a_document_is_raised_with_its_places(client: AsyncClient):
    with pytest.raises(InvalidDefinition) as refused:
        await client.save({**ONE, "nodes": [{"id": "a", "type": "nosuch"}]})

    assert refused.value.problems[0].path == ("nodes", 0, "type")


async def test_expressions_and_node_types_can_be_asked_for(client: AsyncClient):
    assert (await client.evaluate("{{ input.n * 2 }}", {"input": {"n": 21}}))["value"] == 42
    assert "http.request" in [each["name"] async for each in client.node_types()]
