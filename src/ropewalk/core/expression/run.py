"""What an evaluation reads (`Scope`) and what it may spend (`Run`).

Straight-line code cannot outgrow its 4 KiB source, so a path or a comparison is not counted while it runs: its cost is
known when it is compiled and taken off the budget at once. Only what repeats or grows is counted as it happens: each
pass through a rule (`x => …`), each bulk operation, each byte of text or list it makes. Bytes are taken *before* they
are allocated and never given back, so the room bounds the memory of a whole evaluation, not only of its result.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

from ropewalk.core.expression.faults import Refused

MAX_SOURCE: Final = 4096
MAX_DEPTH: Final = 64
MAX_STEPS: Final = 10_000
MAX_TEXT_STEPS: Final = 10 * MAX_STEPS
MAX_TREE_STEPS: Final = 100 * MAX_STEPS
MAX_VALUE: Final = 1 << 20
MAX_ROOM: Final = 4 << 20
MAX_INTEGER: Final = 1 << 53
MAX_FLOAT: Final = sys.float_info.max

ROOTS: Final = ("input", "vars", "nodes", "item", "index", "execution", "workspace", "env")
NODE_FIELDS: Final = ("output", "state", "error", "errors")


class Scope:
    """The names an expression can see. All values are JSON; `nodes` may be any mapping from id to a node's record.

    `steps` are those left for a tree that is evaluated in it.
    """

    __slots__ = (*ROOTS, "steps")

    def __init__(
        self,
        *,
        input: Any = None,  # noqa: A002 (the name authors write)
        vars: Any = None,  # noqa: A002 (the name authors write)
        nodes: Mapping[str, Any] | None = None,
        item: Any = None,
        index: int | None = None,
        execution: Any = None,
        workspace: Any = None,
        env: Any = None,
    ) -> None:
        self.input = input
        self.vars = vars
        self.nodes = {} if nodes is None else nodes
        self.item = item
        self.index = index
        self.execution = execution
        self.workspace = workspace
        self.env = env
        self.steps = MAX_TREE_STEPS


class Run:
    """One evaluation under way: its scope, the values of bound names, and what is left of its allowance."""

    __slots__ = ("bound", "patterns", "piped", "regex_work", "room", "scope", "steps", "text_steps")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.steps = MAX_STEPS
        self.text_steps = MAX_TEXT_STEPS
        self.room = MAX_ROOM
        self.regex_work = 0
        self.bound: list[Any] = []
        self.piped: Any = None
        self.patterns: dict[tuple[str, bool], Any] | None = None

    def charge(self, steps: int) -> None:
        """Take `steps` off the allowance."""
        self.steps -= steps
        if self.steps < 0:
            raise Refused(f"takes more than {MAX_STEPS:,} steps; work on fewer or smaller values")

    def conclude(self) -> None:
        """An expression is done: what it has taken is taken off what its text may take, and all texts of a tree."""
        taken = MAX_STEPS - self.steps
        self.text_steps -= taken
        self.scope.steps -= taken
        if self.text_steps < 0:
            raise Refused(f"the expressions of this text take more than {MAX_TEXT_STEPS:,} steps together")
        if self.scope.steps < 0:
            raise Refused(f"the expressions up to here take more than {MAX_TREE_STEPS:,} steps together")

    def walk(self, items: int) -> None:
        """Pay for a cheap look at each of so many items."""
        self.charge(1 + (items >> 2))

    def scan(self, characters: int) -> None:
        """Pay for running over so many characters."""
        self.charge(characters >> 8)

    def allocate(self, size: int) -> None:
        """Make room for a value of so many bytes, before it is made."""
        if size > MAX_VALUE:
            raise Refused("makes a value larger than 1 MiB; work on less at a time")
        self.room -= size
        if self.room < 0:
            raise Refused("makes more than 4 MiB of values on the way; work on less at a time")
