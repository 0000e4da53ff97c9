"""Credentials in a program of one's own, and in its tests."""

from pathlib import Path

import pytest

import ropewalk
from ropewalk import NodeContext, Workflow, node
from ropewalk.core.errors import InvalidDefinition, NotFound
from ropewalk.testing import TestEngine

SECRET = "s3cret-canary-0815"


@node
async def tell(context: NodeContext) -> list:
    found = await context.credential("", "generic")
    return [found and found.name, found and found.values["value"]]


def workflow() -> Workflow:
    made = Workflow("told")
    made.node("a", tell, credentials="key")
    return made


async def test_a_program_keeps_credentials_for_its_own_workflows(tmp_path: Path):
    async with ropewalk.open(f"sqlite:///{tmp_path}/own.db", nodes=[tell]) as engine:
        await engine.create_credential("key", "generic", {"value": SECRET}, hosts=["api.example.org"])
        changed = await engine.change_credential("key", {"value": SECRET}, hosts=[])
        execution = await engine.start(workflow())

        assert await execution.result() == {"a": ["key", "***"]}
        assert (changed["revision"], changed["hosts"]) == (2, [])
        assert [each["name"] async for each in engine.credentials()] == ["key"]
        assert (await engine.credential("key"))["usedBy"][0]["name"] == "told"
        assert (await engine.test_credential("key"))["ok"] is None
        assert [await engine.remove_credential("key") for _ in range(2)] == [True, False]
        with pytest.raises(NotFound):
            await engine.credential("key")


def test_a_test_keeps_the_credential_that_its_workflow_names(ropewalk_engine: TestEngine):
    with pytest.raises(InvalidDefinition, match="there is no credential 'key'"):
        ropewalk_engine.start(workflow())
    ropewalk_engine.create_credential("key", "generic", {"value": SECRET})

    assert ropewalk_engine.start(workflow()).result() == {"a": ["key", "***"]}
