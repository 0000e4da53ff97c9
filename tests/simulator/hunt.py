"""Looking for a seeded bug until it shows."""

from typing import Final

from msgspec import Struct

from tests.simulator.bugs import Bug
from tests.simulator.simulation import simulate
from tests.simulator.workflows import forget_workflows

MOST_HISTORIES: Final = 10_000


class Caught(Struct, frozen=True):
    """The history that gave a bug away, and how many it took."""

    histories: int
    violation: str


def hunt(bug: Bug, most: int = MOST_HISTORIES) -> Caught | None:
    """Plant the bug and simulate until a history shows it; None if none does."""
    forget_workflows()
    try:
        with bug.planted():
            for seed in range(most):
                if violations := simulate(seed).violations:
                    return Caught(seed + 1, violations[0])
    finally:
        forget_workflows()
    return None
