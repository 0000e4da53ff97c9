"""Draws the state diagrams of `docs/states.md` from the tables the code itself goes by."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from ropewalk.core.state import EXECUTION_STEPS, NODE_STEPS, QUEUE_STEPS, RESOLUTION_STEPS, RUN_STEPS

DIAGRAMS: dict[str, tuple[str, Mapping[Any, Sequence[StrEnum]]]] = {
    "Execution": ("One pass through one workflow version.", EXECUTION_STEPS),
    "Node": ("Inside an execution; BLOCKED is only shown, once the execution has ended.", NODE_STEPS),
    "Run": ("One attempt at one node, or at one item of a map.", RUN_STEPS),
    "Queue item": ("An accepted start; deleted when its execution ends well or is cancelled.", QUEUE_STEPS),
    "Dead letter": ("A run that gave up, kept for a person.", RESOLUTION_STEPS),
}

HEAD = """# States

Generated from `ropewalk/core/state.py` by `make generate`; `make check` refuses a stale copy.
"""


def render() -> str:
    """The whole page."""
    return HEAD + "".join(_section(name, about, steps) for name, (about, steps) in DIAGRAMS.items())


def _section(name: str, about: str, steps: Mapping[Any, Sequence[StrEnum]]) -> str:
    first = next(iter(steps))
    lines = [f"    [*] --> {first}"]
    for source, targets in steps.items():
        lines += [f"    {source} --> {target}" for target in targets] or [f"    {source} --> [*]"]
    return f"\n## {name}\n\n{about}\n\n```mermaid\nstateDiagram-v2\n" + "\n".join(lines) + "\n```\n"
