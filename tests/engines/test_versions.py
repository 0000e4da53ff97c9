"""Which version of a workflow a start takes, wherever the start comes from."""

import pytest
from msgspec.structs import replace

from ropewalk.core.errors import InvalidTransition, NotFound, UnknownVersion
from ropewalk.core.events import RULES, ExecutionAccepted
from ropewalk.core.state import ExecutionState
from ropewalk.engines import versions as module
from ropewalk.service import definitions
from ropewalk.store import workflows
from tests.engines.worlds import World, act, flow, node

PARENT = flow(node("call", "subworkflow", workflow="child"))


async def test_a_start_takes_the_published_version_unless_it_names_another(world: World):
    first = await world.save(flow(act("a", 1)))
    second = await world.save(flow(act("a", 2)))
    versions = world.service.engine.versions

    assert (await versions.of_name("default", "test", None)).version == second.version
    assert await versions.of_name("default", first.workflow, 1) is first
    with pytest.raises(NotFound, match="there is no version 9"):
        await versions.of_name("default", "test", 9)


async def test_a_child_is_refused_as_any_other_start_is(world: World):
    await world.save(flow(act("a", 1), name="child"))
    found = await workflows.find(world.service.store, "default", "child")
    await definitions.archive(world.service, found, "ann")

    ended = await world.run(PARENT)

    assert ended.state is ExecutionState.FAILED
    assert "workflow 'child' is archived: save it again to start it" in (ended.error or "")
    with pytest.raises(InvalidTransition, match="is archived"):
        await world.service.engine.versions.of_name("default", "child", None)


async def test_a_version_is_compiled_once(world: World, monkeypatch: pytest.MonkeyPatch):
    saved = await world.save(flow(act("a", 1)))
    compiled, load_plan = [], module.load_plan
    monkeypatch.setattr(module, "load_plan", lambda document: compiled.append(document) or load_plan(document))
    versions = world.service.engine.versions
    versions.forget()

    found = [await versions.version(saved.workflow, 1) for _ in range(3)]

    assert found == [found[0]] * 3
    assert len(compiled) == 1


async def test_an_execution_of_rules_that_are_not_known_here_is_left_to_a_newer_worker(world: World):
    ended = await world.run(flow(act("a", 1)))
    (accepted,) = await world.events(ended.execution, ExecutionAccepted)

    with pytest.raises(UnknownVersion, match="it follows rules"):
        await world.service.engine.versions.followed(replace(accepted, rules=RULES + 1))
