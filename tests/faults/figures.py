"""What an experiment has shown: figures, and whatever promise was broken."""

from msgspec import Struct


class Figure(Struct, frozen=True):
    """One measured value; `n` is how many it is made from."""

    metric: str
    value: float
    unit: str
    n: int


class Outcome(Struct, frozen=True):
    """The figures of one experiment, and the promises it saw broken."""

    experiment: str
    figures: list[Figure]
    violations: list[str]
