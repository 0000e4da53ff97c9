"""`ropewalk import`."""

import json

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
