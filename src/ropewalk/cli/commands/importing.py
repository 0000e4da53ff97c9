"""`ropewalk import`: what other programs wrote, as workflows and nodes. A new kind is one more command of the group."""

import sys
from typing import Any, Final

import click

from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.text import plain
from ropewalk.core.errors import InvalidInput

LARGEST: Final = 1024 * 1024


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


def _text(raw: bytes) -> str:
    if len(raw) > LARGEST:
        raise InvalidInput(f"what is read from stdin has more than {LARGEST} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("what is read from stdin is not UTF-8") from error


def print_document(value: Any, *, is_json: bool) -> None:
    """Prints what was made, to be put into a file."""
    if is_json:
        print_json(value)
        return
    import yaml  # here, since JSON does without

    print(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100), end="")
