"""`ropewalk import`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ropewalk.cli.main import cli
from ropewalk.documents import load_document
from tests.cli.conftest import Invoke

COMMAND = "curl -u ada:s3cret-word -d a=1 https://shop.example/orders"
NODE = {
    "id": "request",
    "type": "http.request",
    "with": {"method": "POST", "url": "https://shop.example/orders", "form": {"a": "1"}},
    "credentials": "CHANGE-ME",
}


def test_a_curl_command_is_printed_as_a_node_and_the_notes_apart(invoke: Invoke):
    said = invoke("import", "curl", COMMAND)

    assert load_document(said.stdout).value == NODE
    assert "make a credential of the type http.basic" in said.stderr
    assert "s3cret-word" not in said.stdout + said.stderr


def test_a_curl_command_is_read_from_stdin_and_printed_as_json():
    said = CliRunner().invoke(cli, ["import", "curl", "-", "--json"], input=COMMAND)

    assert json.loads(said.stdout) == NODE


def test_a_curl_command_that_cannot_be_imported_is_bad_input(invoke: Invoke):
    said = invoke("import", "curl", "curl -k https://shop.example")

    assert (said.exit_code, said.stdout) == (2, "")
    assert "--insecure cannot be had" in said.stderr


DOCUMENTS = Path(__file__).parents[2] / "importing" / "documents"


def test_a_workflow_of_n8n_is_printed_and_the_report_apart(invoke: Invoke, tmp_path: Path):
    report = tmp_path / "report.json"

    said = invoke("import", "n8n", str(DOCUMENTS / "01_order_webhook.json"), "--report", str(report))

    assert load_document(said.stdout).value["name"] == "Order webhook"
    assert "exact         Shape order (n8n-nodes-base.set) → shape_order" in said.stderr
    assert "3 exact, 2 approximated, 0 stub, 0 unsupported" in said.stderr
    assert json.loads(report.read_text())["counts"]["exact"] == 3


def test_a_workflow_of_n8n_is_read_from_stdin_and_passes_the_check(invoke: Invoke, tmp_path: Path):
    text = (DOCUMENTS / "02_nightly_report.json").read_text()
    file = tmp_path / "workflow.json"

    said = CliRunner().invoke(cli, ["import", "n8n", "-", "--json"], input=text)
    file.write_text(said.stdout)

    assert invoke("validate", str(file)).exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is not JSON"),
        ("[]", "expected a workflow as n8n exports it"),
        ('{"ropewalk": 1, "nodes": []}', 'there is no object "connections"'),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_what_is_no_workflow_of_n8n_is_bad_input(text: str, message: str):
    said = CliRunner().invoke(cli, ["import", "n8n", "-"], input=text)

    assert said.stdout == ""
    assert message in str(said.exception) + said.stderr
