"""The examples keep the rules they are to teach."""

import runpy
from pathlib import Path

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.documents import read_document
from ropewalk.nodes.base import Registry
from ropewalk.workflow import Workflow

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_example_file_is_a_valid_workflow_named_like_it(file):
    definition = parse_definition(read_document(file).value, Registry.builtin().infos())

    assert definition.name == file.stem


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_example_file_goes_through_the_builder_unchanged(file):
    assert Workflow.load(file).document() == read_document(file).value


@pytest.mark.parametrize("file", [*FILES, EXAMPLES / "flaky.py"], ids=lambda file: file.name)
def test_an_example_says_how_to_run_it(file):
    text = file.read_text()

    assert f"{'python' if file.suffix == '.py' else 'ropewalk run'} examples/{file.name}" in text


def test_the_python_example_is_a_valid_workflow():
    workflow = runpy.run_path(str(EXAMPLES / "flaky.py"))["workflow"]
    registry = Registry.builtin()
    for node_type in workflow.node_types:
        registry.register(node_type)

    definition = parse_definition(workflow.document(), registry.infos())

    assert [node["type"] for node in definition.nodes] == ["price", "stock", "rating", "log", "offer"]
