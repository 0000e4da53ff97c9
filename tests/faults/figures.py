"""What an experiment has shown: figures, the promises that were broken, and what came later than its bar."""

from msgspec import Struct


class Figure(Struct, frozen=True):
    """One measured value; `n` is how many it is made from."""

    metric: str
    value: float
    unit: str
    n: int


class Outcome(Struct, frozen=True):
    """The figures of one experiment, the promises it saw broken, and what was later than its bar.

    How late something comes depends on the machine: a campaign fails for it, a test does not.
    """

    experiment: str
    figures: list[Figure]
    violations: list[str]
    late: list[str] = []
