"""Values of credentials that are kept elsewhere: `env:NAME` in the environment of the worker, `file:/path` in a file.

Only what the configuration names may be referred to: a member of a workspace who sets a credential would otherwise read
the environment, and the files, of the machine.
"""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from ropewalk.nodes.failure import NodeFailure

ENV: Final = "env:"
FILE: Final = "file:"
LARGEST_FILE: Final = 16_384


def is_reference(value: object) -> bool:
    """Whether a value stands for one that is kept elsewhere."""
    return isinstance(value, str) and value.startswith((ENV, FILE))


class References(Struct, frozen=True):
    """What may be referred to: names of the environment (`PAY_*` is all that begin so), and folders or files."""

    env: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None

    def refusal(self, reference: str) -> str | None:
        """Why a reference may not be used, if so."""
        if reference.startswith(ENV):
            name = reference.removeprefix(ENV)
            is_open = any(fnmatchcase(name, pattern) for pattern in self.env)
            return None if is_open else f"{reference}: the setting credentials.env does not name this variable"
        path = reference.removeprefix(FILE)
        if not os.path.isabs(path) or "\0" in path:
            return f"{reference}: must be a whole path, like file:/run/secrets/token"
        is_open = any(_is_within(os.path.realpath(path), os.path.realpath(folder)) for folder in self.files)
        return None if is_open else f"{reference}: the setting credentials.files names no folder that it is in"

    def resolve(self, reference: str) -> str:
        """The value that a reference stands for; a permanent failure if it may not be used, or there is none."""
        if (why := self.refusal(reference)) is not None:
            raise NodeFailure.permanent(why)
        found = self._variable(reference) if reference.startswith(ENV) else _content(reference)
        if not found:
            raise NodeFailure.permanent(f"{reference}: there is nothing")
        return found

    def _variable(self, reference: str) -> str | None:
        return (os.environ if self.environment is None else self.environment).get(reference.removeprefix(ENV))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _content(reference: str) -> str:
    """The text of a file, without the end of its last line."""
    path = os.path.realpath(reference.removeprefix(FILE))
    try:
        # The path was resolved and vetted: a link that is put there since is not followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            text = file.read(LARGEST_FILE + 1)
        if len(text) > LARGEST_FILE:
            raise NodeFailure.permanent(f"{reference}: is larger than {LARGEST_FILE:,} bytes")
        return text.decode().removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NodeFailure.permanent(f"{reference}: cannot be read: {why}") from None
