"""`ropewalk import`: what other programs wrote, as workflows and nodes. A new kind is one more command of the group."""

import sys
from typing import Any, Final

import click

from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.text import plain
from ropewalk.core.errors import InvalidInput

LARGEST: Final = 1024 * 1024
LARGEST_WORKFLOW: Final = 4 * LARGEST


@click.group("import")
def import_() -> None:
    """Make workflows and nodes of what other programs wrote."""


@import_.command()
@click.argument("command", metavar="COMMAND|-")
@click.option("--json", "is_json", is_flag=True, help="Print JSON instead of YAML.")
def curl(command: str, is_json: bool) -> int:
    """Print the node that sends the request of a curl command.

    COMMAND is the whole command between quotation marks; `-` reads it from stdin. Passwords, tokens and keys never get
    into the node: it names a credential, which is to be made. What was left out or is to be done is said on stderr.
    """
    from ropewalk.importing.curl import node_of  # here, since other kinds do without

    text = _text(sys.stdin.buffer.read(LARGEST + 1)) if command == "-" else command
    try:
        found = node_of(text)
    except ValueError as error:
        raise InvalidInput(f"the curl command cannot be imported: {error}") from error
    for note in found.notes:
        print(plain(f"note: {note}"), file=sys.stderr)
    print_document(found.node, is_json=is_json)
    return Code.OK


@import_.command()
@click.argument("file", metavar="FILE|-", type=click.Path(dir_okay=False, exists=True, allow_dash=True))
@click.option("--json", "is_json", is_flag=True, help="Print JSON instead of YAML.")
@click.option("--report", type=click.Path(dir_okay=False, writable=True), help="Write the report there, as JSON.")
def n8n(file: str, is_json: bool, report: str | None) -> int:
    """Print the workflow that does what a workflow of n8n does.

    FILE is an export of n8n; `-` reads it from stdin. The report on stderr says of each node whether it is the same
    (exact), nearly so (approximated), left to be written (stub) or not there (unsupported), and why. What is left to be
    written fails when it is executed. Credentials are named and not copied: make them before you start it.
    """
    import json

    from ropewalk.importing.n8n import workflow_of  # here, since other kinds do without
    from ropewalk.wiring import node_types

    with click.open_file(file, "rb") as opened:
        text = _text(opened.read(LARGEST_WORKFLOW + 1), LARGEST_WORKFLOW)
    try:
        found = workflow_of(json.loads(text), node_types().infos())
    except json.JSONDecodeError as error:
        raise InvalidInput(f"the workflow cannot be imported: it is not JSON: {error}") from error
    except RecursionError as error:
        raise InvalidInput("the workflow cannot be imported: it is nested too deep") from error
    except ValueError as error:
        raise InvalidInput(f"the workflow cannot be imported: {error}") from error
    for line in found.report.lines():
        print(plain(line), file=sys.stderr)
    if report is not None:
        with click.open_file(report, "w", encoding="utf-8") as written:
            written.write(json.dumps(found.report.as_json(), indent=2, ensure_ascii=False) + "\n")
    print_document(found.document, is_json=is_json)
    return Code.OK


def _text(raw: bytes, largest: int = LARGEST) -> str:
    if len(raw) > largest:
        raise InvalidInput(f"what is read has more than {largest} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("what is read is not UTF-8") from error


def print_document(value: Any, *, is_json: bool) -> None:
    """Prints what was made, to be put into a file."""
    if is_json:
        print_json(value)
        return
    import yaml  # here, since JSON does without

    print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100), end="")
