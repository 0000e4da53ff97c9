"""The one table of what each role may do. It lets callers in, and the tests are made from it."""

from enum import StrEnum
from typing import Final


class Right(StrEnum):
    """What a route needs."""

    READ = "read"
    READ_PAYLOADS = "read-payloads"
    EXECUTE = "execute"
    EDIT = "edit"
    USE_CREDENTIALS = "use-credentials"
    RUN = "run"
    ADMINISTER = "administer"
    OPERATE = "operate"
    """Beyond any workspace: to make them, and to see the workers. Root keys alone have it."""
    OBSERVE = "observe"
    """Beyond any workspace too: to read the figures of a server, and nothing else. Root keys alone have it."""
    COME_IN = "come-in"
    """To be known: a caller who has proved who they are has it, in no workspace in particular."""


class Role(StrEnum):
    """What a subject is in a workspace, or for one workflow."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"
    RUNNER = "runner"
    """An external runner: takes work of its pools and reports, and sees nothing else."""


_VIEWER: Final = frozenset({Right.READ})
_OPERATOR: Final = _VIEWER | {Right.READ_PAYLOADS, Right.EXECUTE}
_EDITOR: Final = _OPERATOR | {Right.EDIT, Right.USE_CREDENTIALS}
_ADMIN: Final = _EDITOR | {Right.ADMINISTER, Right.RUN}

RIGHTS: Final = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.EDITOR: _EDITOR,
    Role.ADMIN: _ADMIN,
    Role.RUNNER: frozenset({Right.RUN}),
}
BEYOND: Final = frozenset({Right.OPERATE, Right.OBSERVE})
"""What is beyond any workspace, and so cannot be shared."""
EVERYTHING: Final = frozenset(Right) - {Right.COME_IN}
NOTHING: Final[frozenset[Right]] = frozenset()
