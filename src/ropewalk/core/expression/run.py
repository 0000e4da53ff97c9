"""What an evaluation reads (`Scope`) and what it may spend (`Run`).

Straight-line code cannot outgrow its 4 KiB source, so a path or a comparison is not counted while it runs: its cost is
known when it is compiled and taken off the budget at once. Only what repeats or grows is counted as it happens: each
pass through a rule (`x => …`), each bulk operation, each byte of text or list it makes. Bytes are taken *before* they
are allocated and never given back, so the room bounds the memory of a whole evaluation, not only of its result.

A step takes at most about a microsecond. An expression has a fixed number of steps, and more if it looks at large
values: once through all of them with everything it does always fits. What the expressions of one template take together
has a ceiling. A caller that must not be kept waiting evaluates *briefly*: after few steps it gets `Unfinished`, and
evaluates again elsewhere. Evaluating has no effect, so nothing is lost but these steps.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from ropewalk.core.errors import Unfinished
from ropewalk.core.expression.chance import Chance
from ropewalk.core.expression.faults import Refused

MAX_SOURCE: Final = 4096
MAX_DEPTH: Final = 64
MAX_STEPS: Final = 10_000
MAX_TREE_STEPS: Final = 100 * MAX_STEPS
BRIEF_STEPS: Final = 2_000
MAX_VALUE: Final = 1 << 20
MAX_ROOM: Final = 4 << 20
MAX_INTEGER: Final = 1 << 53
MAX_FLOAT: Final = sys.float_info.max

_HELD: Final = ("input", "vars", "nodes", "item", "index", "execution", "workspace", "env")
OF_TRIGGERS: Final = ("event",)
"""What has happened: a name that means something only where a trigger decides what it starts."""
OF_FAILURES: Final = ("error", "attempt")
"""The names that mean something only where it is decided what follows from a failure."""
OF_ROUNDS: Final = ("last",)
"""What the round before gave: a name that means something only in a node that is repeated."""
ROOTS: Final = (*_HELD, "now", *OF_TRIGGERS, *OF_FAILURES, *OF_ROUNDS)
TIMELY: Final = ("now", "uuid", "random")
"""The name and the functions that give something else each time."""
NODE_FIELDS: Final = ("output", "state", "error", "errors", "rounds")


class Scope:
    """The names an expression can see. All values are JSON; `nodes` may be any mapping from id to a node's record.

    `steps` are those left for a tree that is evaluated in it; `is_brief` if the caller goes on elsewhere without them.
    `chance` is there where the names in `TIMELY` may be used, `error` and `attempt` where a failure is looked at.
    """

    __slots__ = (*_HELD, *OF_TRIGGERS, *OF_FAILURES, *OF_ROUNDS, "chance", "is_brief", "steps")

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
        chance: Chance | None = None,
    ) -> None:
        self.input = input
        self.vars = vars
        self.nodes = {} if nodes is None else nodes
        self.item = item
        self.index = index
        self.execution = execution
        self.workspace = workspace
        self.env = env
        self.event: Any = None
        self.error: Any = None
        self.attempt: int | None = None
        self.last: Any = None
        self.chance = chance
        self.steps = MAX_TREE_STEPS
        self.is_brief = False

    @property
    def now(self) -> str | None:
        """When the node started whose expression this is."""
        return None if self.chance is None else self.chance.now


Size = Callable[[Scope], int]
"""How many steps going through everything takes that an expression looks at."""


class Run:
    """One evaluation under way: its scope, the values of bound names, and what is left of its allowance."""

    __slots__ = ("bound", "given", "patterns", "piped", "regex_work", "room", "scope", "size", "steps")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        # What the expression under way was given, and what is left of it; `size` is asked once, when nothing is left.
        self.given = self.steps = MAX_STEPS
        self.size: Size | None = None
        self.room = MAX_ROOM
        self.regex_work = 0
        self.bound: list[Any] = []
        self.piped: Any = None
        self.patterns: dict[tuple[str, bool], Any] | None = None

    def chance(self) -> Chance:
        """What is drawn from; refused where nothing would record it."""
        if self.scope.chance is None:
            raise Refused("cannot be used here; use it in a node, and refer to the node's output")
        return self.scope.chance

    def charge(self, steps: int) -> None:
        """Take `steps` off the allowance."""
        self.steps -= steps
        if self.steps < 0:
            self._grow()

    def _grow(self) -> None:
        """Allow as many more as going through all that the expression looks at takes, up to the ceiling."""
        if self.scope.is_brief:
            raise Unfinished
        if self.size is not None:
            more = min(self.size(self.scope), self.scope.steps - self.given)
            self.size = None
            self.given += more
            self.steps += more
        if self.steps < 0:
            raise self._too_many()

    def conclude(self) -> None:
        """An expression is done: what it has taken is taken off what the whole tree may take."""
        self.scope.steps -= self.given - self.steps
        if self.scope.steps < 0:
            if self.scope.is_brief:
                raise Unfinished
            raise self._too_many()

    def _too_many(self) -> Refused:
        if self.given < self.scope.steps:
            return Refused(f"takes more than {self.given:,} steps; work on fewer or smaller values")
        return Refused(f"the expressions up to here take more than {MAX_TREE_STEPS:,} steps together")

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
