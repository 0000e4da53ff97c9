"""The two consoles: answers go to stdout, progress and advice to stderr."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ropewalk.cli.exit_codes import Code

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_WIDTH: Final = 500
"""Where there is no terminal, lines are not folded: the program or person that reads them wants them whole."""


def console(*, is_error: bool = False) -> "Console":
    """Plain text unless there is a terminal; nothing in what is printed is taken for markup."""
    from rich.console import Console  # here, since answers in JSON and plain lines do without

    stream = sys.stderr if is_error else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(
        stderr=is_error, width=width, markup=False, emoji=False, highlight=False, soft_wrap=width is not None
    )


def answer(found: Any, drawn: "Callable[[], RenderableType]", *, is_json: bool) -> Code:
    """Prints what was found, for a program as it is, for a person as it is drawn."""
    if is_json:
        print_json(found)
    else:
        print_drawn(drawn())
    return Code.OK


def print_drawn(drawn: "RenderableType") -> None:
    """Prints what is drawn; a line that is longer than the terminal is wide is the terminal's to fold."""
    console().print(drawn, crop=False)


def print_json(value: Any) -> None:
    """One JSON document, indented where a person looks."""
    print(json.dumps(msgspec.to_builtins(value), indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """One line of a stream."""
    # In one piece: a server and its workers write into the same pipe, and Python may be told not to buffer.
    sys.stdout.write(f"{msgspec.json.encode(value).decode()}\n")
    sys.stdout.flush()
