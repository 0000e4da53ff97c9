"""Functions that give something else each time: recorded with the inputs of their node, and the same in a replay."""

from typing import Final

from ropewalk.core.expression.functions.table import Topic
from ropewalk.core.expression.run import Run

CHANCE: Final = Topic("Chance")


@CHANCE.function("uuid() -> text", "A new random UUID; a retry of the node has the same.", "length(uuid())", 36, cost=8)
def uuid(run: Run) -> str:
    return run.chance().uuid()


@CHANCE.function(
    "random() -> number",
    "A random number from 0 to less than 1; a retry of the node has the same.",
    "random() < 1",
    True,
    cost=8,
)
def random(run: Run) -> float:
    return run.chance().number()
