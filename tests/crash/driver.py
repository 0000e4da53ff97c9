"""Brings victims up and down, over and over, and keeps the figures."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import Final, assert_never

import msgspec
from msgspec import Struct, field

from tests.crash.ledgers import Place
from tests.crash.victim import Request, Task
from tests.store.samples import ROOT

PATIENCE: Final = 60.0
EARLIEST, LATEST = 0.02, 0.6
"""How long after it serves a victim may be killed, in seconds."""
MOST_CLIENTS: Final = 40
CLIENTS: Final = (2, 6, MOST_CLIENTS)
"""Few make small commits, many make those that are written on another thread."""
COLD_EVERY: Final = 10
"""Every so many lives begin with a new interpreter."""
MOST_COMMITS: Final = 80
"""A victim that dies before a commit dies before one of so many."""


class Death(StrEnum):
    """When a victim is killed."""

    WHILE_SERVING = "while_serving"
    WHILE_STARTING = "while_starting"
    BEFORE_COMMIT = "before_commit"


DEATHS: Final = (0.5, 0.2, 0.3)
"""How often each of them is chosen."""


class Misbehaved(Exception):
    """A victim did what it never may: end by itself, or not answer."""


class Nursery:
    """A process with everything imported, from which victims are forked one after the other."""

    def __init__(self, under: Sequence[str] = ()) -> None:
        """`under`: the command that watches over it."""
        command = [*under, sys.executable, "-m", "tests.crash.victim"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._pending = b""
        self.began = time.monotonic()
        self.victim: int | None = None

    def ask(self, request: Request) -> None:
        """Bring up a victim."""
        self.tell(msgspec.json.encode(request))
        self.victim = int(self.expect("born").split()[1])

    def tell(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def expect(self, word: str, seconds: float = PATIENCE) -> str:
        """The next line, which begins with this word."""
        line = self.line(seconds)
        if line is None or not line.startswith(word):
            raise Misbehaved(f"expected {word!r} and heard {line!r}")
        return line

    def line(self, seconds: float) -> str | None:
        """The next line; None if there is none in that time."""
        assert self._process.stdout
        deadline = time.monotonic() + seconds
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            read = os.read(self._process.stdout.fileno(), 4096)
            if not read:
                raise Misbehaved("the nursery ended")
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        if line.startswith(b"ended "):
            self.victim = None  # its number may be another's from here on
        return line.decode()

    def signal(self, number: int) -> None:
        """Send the victim this signal."""
        assert self.victim is not None
        os.kill(self.victim, number)

    def ended(self) -> int:
        """Wait for the victim's end, through all that it still says; its exit code."""
        while (line := self.line(PATIENCE)) is not None:
            if line.startswith("ended "):
                return int(line.removeprefix("ended "))
        raise Misbehaved(f"process {self.victim} does not end")

    def close(self) -> None:
        """Ends its input, and it ends; a process that watches over it has then written everything down."""
        assert self._process.stdin
        with self._process:
            if self.victim is not None:
                os.kill(self.victim, signal.SIGKILL)
            self._process.stdin.close()
            try:
                self._process.wait(PATIENCE)
            finally:
                self._process.kill()


@contextmanager
def nursery(under: Sequence[str] = ()) -> Iterator[Nursery]:
    opened = Nursery(under)
    try:
        yield opened
    finally:
        opened.close()


class Figures(Struct):
    """What a campaign has shown."""

    deaths: Counter[Death] = field(default_factory=Counter)
    warm: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    quiesced_in: float = 0.0

    @property
    def cycles(self) -> int:
        return self.deaths.total()


class Campaign:
    """Kills victims at random moments, all on one store, then lets everything come to rest."""

    def __init__(self, place: Place, seed: int, progress: Callable[[Figures], None] = lambda figures: None) -> None:
        self.figures = Figures()
        self._place = place
        self._chance = random.Random(seed)
        self._progress = progress
        self._startup = 0.5

    def run(self, cycles: int, most_seconds: float = float("inf")) -> Figures:
        """So many lives and deaths, fewer if the time is used up; then quiet."""
        deadline = time.monotonic() + most_seconds
        with ExitStack() as homes:
            for cycle in range(cycles):
                if time.monotonic() > deadline:
                    break
                if is_cold := cycle % COLD_EVERY == 0:
                    homes.close()
                    home = homes.enter_context(nursery())
                self._live_and_die(home, is_cold=is_cold, has_long_naps=cycle < cycles // 2)
        self.quiesce()
        return self.figures

    def _live_and_die(self, home: Nursery, *, has_long_naps: bool, is_cold: bool) -> None:
        began = home.began if is_cold else time.monotonic()
        death = Death.WHILE_SERVING if is_cold else self._chance.choices(list(Death), DEATHS)[0]
        home.ask(self._request(death, has_long_naps=has_long_naps))
        match death:
            case Death.WHILE_SERVING:
                self._let_it_serve(home, began, self.figures.cold if is_cold else self.figures.warm)
                home.signal(signal.SIGKILL)
            case Death.WHILE_STARTING:
                home.line(self._chance.uniform(0, self._startup))
                home.signal(signal.SIGKILL)
            case Death.BEFORE_COMMIT:
                pass  # by its own hand
            case _:
                assert_never(death)
        if (code := home.ended()) != -signal.SIGKILL:
            raise Misbehaved(f"the victim ended by itself, with code {code}")
        self.figures.deaths[death] += 1
        self._progress(self.figures)

    def _request(self, death: Death, *, has_long_naps: bool) -> Request:
        return Request(
            place=self._place,
            seed=self._chance.getrandbits(32),
            clients=MOST_CLIENTS if death is Death.BEFORE_COMMIT else self._chance.choice(CLIENTS),
            has_long_naps=has_long_naps,
            dies_before_commit=self._chance.randint(1, MOST_COMMITS) if death is Death.BEFORE_COMMIT else None,
        )

    def _let_it_serve(self, home: Nursery, began: float, figures: list[float]) -> None:
        asked = time.monotonic()
        home.expect("serving")
        served = time.monotonic()
        figures.append(served - began)
        self._startup = served - asked
        if (line := home.line(self._chance.uniform(EARLIEST, LATEST))) is not None:
            raise Misbehaved(f"the victim was to be killed and said {line!r}")

    def quiesce(self) -> None:
        """Let everything come to rest that was ever accepted; nodes find every gate open."""
        began = time.monotonic()
        with nursery() as home:
            home.ask(Request(place=self._place, task=Task.QUIESCE))
            home.tell(b"open")
            if (code := home.ended()) != 0:
                raise Misbehaved(f"the last victim ended with code {code}")
        self.figures.quiesced_in = time.monotonic() - began
