"""Output that is not read any more, as in `ropewalk executions ls | head -1`, stops no command.

What is still to be said is dropped, and the command ends as it would have ended: with its exit code, and with the
execution it is at. Only a command that would go on telling for ever asks whether it is still read.
"""

import os
import sys
from typing import Any, Final, TextIO, cast

_NAMES: Final = ("stdout", "stderr")


class _Stream:
    """A stream that drops what it is given once the other end is closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_read = True

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._drop()

    def _drop(self) -> None:
        self.is_read = False
        # Also for what lies in the buffer, and is written when the interpreter ends.
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def outlive_readers() -> None:
    """From now on, what this process prints may go unread, or nowhere at all."""
    for name in _NAMES:
        stream = getattr(sys, name)
        # A process that was started with a closed stream has none.
        found = open(os.devnull, "w", encoding="utf-8") if stream is None else stream  # noqa: SIM115 -- for its life
        setattr(sys, name, cast(TextIO, _Stream(found)))


def is_read() -> bool:
    """Whether anything still reads stdout, as far as writing to it has told."""
    return bool(getattr(sys.stdout, "is_read", True))
