"""What goes wrong, and how often: each world draws its own mixture, so that rare pairs of faults meet."""

from random import Random
from typing import Final

KINDS: Final[dict[str, float]] = {
    "abort": 0.02,
    "lost answer": 0.02,
    "crash before commit": 0.01,
    "crash after log": 0.02,
    "crash before kin are told": 0.2,
    "crash before a child is told": 0.6,
    "crash after commit": 0.015,
    "crash between commands": 0.01,
    "freeze": 0.01,
    "freeze in commit": 0.01,
    "graceful stop": 0.01,
    "theft": 0.01,
    "lost report": 0.02,
    "repeated report": 0.08,
    "spurious wake": 0.03,
    "deadly work": 0.01,
}
"""The usual probability of each kind of fault, every time it could strike."""

INTENSITIES: Final = (0.0, 0.0, 1.0, 1.0, 3.0)


class Faults:
    """The mixture of one world; none strikes any more once `calm` was called."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._rates = {kind: rate * chance.choice(INTENSITIES) for kind, rate in KINDS.items()}

    def strike(self, kind: str) -> bool:
        """Whether this fault happens here and now."""
        rate = self._rates[kind]
        return rate > 0 and self._chance.random() < rate

    def coin(self) -> bool:
        return self._chance.random() < 0.5

    def calm(self) -> None:
        """From now on everything works."""
        self._rates = dict.fromkeys(self._rates, 0.0)
