"""How a node that is repeated goes on from round to round."""

from typing import Any, Final

from msgspec import Struct

from ropewalk.core.duration import parse_duration
from ropewalk.core.expression import Template, compile_template

DEFAULT_ROUNDS: Final = 100


class Repeat(Struct, frozen=True):
    """What is asked after each round, whether a yes ends it, the wait before the next (µs), and how many may be."""

    condition: Template
    is_until: bool
    delay: int
    most: int

    @property
    def word(self) -> str:
        """What the document calls the condition."""
        return "until" if self.is_until else "while"


def repeat_of(repeat: dict[str, Any]) -> Repeat:
    """What a node's `repeat` describes."""
    is_until = "until" in repeat
    condition = compile_template(repeat["until" if is_until else "while"])
    return Repeat(condition, is_until, parse_duration(repeat.get("delay", 0)), repeat.get("max", DEFAULT_ROUNDS))
