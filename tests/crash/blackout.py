"""A life that is traced, and the blackouts that could have ended it."""

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.crash.driver import Nursery, nursery
from tests.crash.ledgers import Place
from tests.crash.power import Call, Disk, calls_in, traced
from tests.crash.verdict import judge
from tests.crash.victim import Request, Task

LEDGERS: Final = ("clients.jsonl", "effects.jsonl")
"""The world outside has them, and its own power."""


class Life(Struct, frozen=True):
    """All that a process did to its files, from the first one on."""

    folder: str
    calls: list[Call]

    def moment(self, chance: random.Random) -> int:
        """After how many calls the power goes: every other time when the world outside was just told something."""
        told = [place + 1 for place, call in enumerate(self.calls) if call.name == "write" and call.is_on(*LEDGERS)]
        return chance.choice([chance.choice(told), chance.randrange(told[0], len(self.calls) + 1)])

    def until(self, moment: int, is_heard: Callable[[Call], bool] = lambda call: True) -> Disk:
        """The disk after so many calls; what is not heard was never done."""
        disk = Disk(self.folder, LEDGERS)
        for call in self.calls[:moment]:
            if is_heard(call):
                disk.tell(call)
        return disk


def live(folder: Path, *, seed: int, clients: int, seconds: float) -> Life:
    """Let a process serve for so long, and kill it."""
    place, log = Place(str(folder / "life")), folder / "calls"
    Path(place.folder).mkdir()
    with nursery(traced(log)) as home:
        home.ask(Request(place=place, seed=seed, clients=clients))
        home.expect("serving")
        home.line(seconds)
        home.signal(signal.SIGKILL)
        home.ended()
    return Life(place.folder, list(calls_in(log)))


async def found_wrong(home: Nursery, place: Place) -> list[str]:
    """What is wrong once the power is back and everything that was accepted had its time to end."""
    home.ask(Request(place=place, task=Task.QUIESCE))
    if (code := home.ended()) != 0:
        return [f"the next process ended by itself, with code {code}"]
    return (await judge(place)).violations
