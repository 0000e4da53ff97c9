"""`ropewalk nodes`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ropewalk.nodes.builtin import BUILTIN
from tests.cli.conftest import Invoke
from tests.client.servers import Served

Answer = Callable[..., Any]


def test_every_node_type_is_listed_with_its_purpose(invoke: Invoke):
    said = invoke("nodes", "--category", "data")

    lines = [line.split(maxsplit=2) for line in said.stdout.splitlines()[1:]]
    assert ["sort", "data"] in [line[:2] for line in lines]
    assert all(purpose.endswith(".") for _, _, purpose in lines)


def test_the_types_of_a_project_are_listed_with_the_others(answer: Answer):
    names = {each["name"] for each in answer("nodes")}

    assert {*BUILTIN, "flaky"} <= names


def test_the_types_of_a_server_are_listed(answer: Answer, server: Served):
    assert answer("nodes", "--server", server.url) == answer("nodes")


def test_a_type_is_shown_with_its_fields_ports_and_output(invoke: Invoke):
    said = invoke("nodes", "show", "filter").stdout

    assert "conditions" in said
    assert "some: At least one item is left." in said
    assert "output: The items that were kept" in said


def test_a_type_that_is_not_there_is_said_with_the_one_that_was_meant(invoke: Invoke):
    said = invoke("nodes", "show", "fliter")

    assert said.exit_code == 2
    assert "there is no node type 'fliter'; did you mean 'filter'?" in said.stderr


def test_words_that_mean_nothing_are_refused(invoke: Invoke):
    said = invoke("nodes", "shwo", "filter")

    assert said.exit_code == 2
    assert "ropewalk nodes show TYPE" in said.stderr


DECLARED = """\
nodeType: crm.find
summary: Finds a customer.
parameters: { required: [id], properties: { id: { type: string } } }
request: { url: "https://crm.example/{{ input.id }}" }
"""


def test_a_declared_type_is_listed_and_checked_against(invoke: Invoke, answer: Answer, project: Path):
    (project / "crm.yaml").write_text(DECLARED, encoding="utf-8")
    (project / "find.yaml").write_text(
        "ropewalk: 1\nname: find\nnodes: [{ id: a, type: crm.find, with: { ido: x } }]\n", encoding="utf-8"
    )

    listed = {each["name"]: each for each in answer("nodes", "--nodes", "crm.yaml")}

    assert listed["crm.find"]["description"] == "Finds a customer."
    assert "nodes[0].with" in invoke("validate", "find.yaml", "--nodes", "crm.yaml").stdout


def test_a_declaration_with_a_problem_is_refused_with_its_line(invoke: Invoke, project: Path):
    (project / "crm.yaml").write_text(DECLARED.replace("input.id", "nodes.a.output"), encoding="utf-8")

    said = invoke("nodes", "--nodes", "crm.yaml")

    assert said.exit_code == 2
    assert "crm.yaml:4:1: request.url: there is no 'nodes' here" in said.stderr
