"""What a node type says about its retries holds wherever it is used, and is recorded with the version."""

from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ropewalk.core.errors import InvalidDefinition
from ropewalk.documents import load_document
from ropewalk.engines.base import Version
from ropewalk.nodes.base import NodeContext, NodeType, Output, Registry
from ropewalk.nodes.function import node
from ropewalk.service import Service
from ropewalk.wiring import Settings, open_service

YAML = """
ropewalk: 1
name: charging
nodes:
  - { id: own, type: charge }
  - { id: less, type: charge, retry: { maxAttempts: 2, delay: 0s, jitter: 0 } }
  - { id: other, type: noop }
"""
RETRY = {"maxAttempts": 4, "delay": "1ms", "factor": 1, "jitter": 0}


calls: list[str] = []


def types(retry: Any = RETRY) -> Registry:
    @node(retry=retry)
    async def charge(context: NodeContext) -> None:
        calls.append(context.node)
        raise ConnectionError("the bank does not answer")

    found = Registry.builtin()
    found.register(charge)
    return found


def document() -> Any:
    return load_document(YAML).value


async def tried(service: Service, version: Version) -> dict[str, int]:
    """How often each node was called."""
    calls.clear()
    await service.ended(await service.start(version))
    return {node: calls.count(node) for node in ("own", "less")}


async def test_a_yaml_node_is_retried_as_its_type_says_unless_it_says_otherwise(tmp_path: Path):
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db")), types()) as service:
        found = await tried(service, await service.save(document()))

    assert found == {"own": 4, "less": 2}


async def test_an_old_version_keeps_its_retry_when_the_type_has_another(tmp_path: Path):
    database = str(tmp_path / "ropewalk.db")
    async with open_service(Settings(db=database), types()) as service:
        old = await service.save(document())
        again = await service.save(document())
    async with open_service(Settings(db=database), types(RETRY | {"maxAttempts": 3})) as service:
        new = await service.save(document())
        kept = await service.engine.versions.version(old.workflow, old.version)
        found = [await tried(service, each) for each in (kept, new)]

    assert (again.version, new.version) == (old.version, old.version + 1)
    assert found == [{"own": 4, "less": 2}, {"own": 3, "less": 2}]


async def test_a_type_of_its_own_class_says_it_too_and_lengths_may_be_timedeltas():
    class Charge(NodeType):
        name = "charge"
        defaults: ClassVar = {"retry": {"maxAttempts": 7, "delay": timedelta(milliseconds=5)}}

        async def run(self, parameters: Any, context: NodeContext) -> Output:
            return Output()

    found = Registry()
    found.register(Charge)

    assert found.infos()["charge"].retry == {"maxAttempts": 7, "delay": "5ms"}


@pytest.mark.parametrize(
    ("retry", "told"),
    [
        ({"maxAttempts": 0}, r"charge: retry\.maxAttempts: "),
        ({"attempts": 3}, r"charge: retry\.attempts: "),
        (3, r"charge: retry: "),
    ],
)
def test_a_retry_that_is_no_good_is_refused_where_the_type_is_made_known(retry: Any, told: str):
    with pytest.raises(ValueError, match=told):
        types(retry)


async def test_a_document_that_is_wrong_is_told_as_before(tmp_path: Path):
    wrong = document() | {"edges": [{"from": "own", "to": "nowhere"}]}
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db")), types()) as service:
        with pytest.raises(InvalidDefinition, match="nowhere"):
            await service.save(wrong)
