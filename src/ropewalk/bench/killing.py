"""What a kill −9 in the middle costs: the time to the end with it, less the time without it.

The process is started again at once, so the figure holds everything a user waits for: the interpreter, its imports,
the recovery of the store, the folding of the log and the second attempt at the node that was under way.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen

from ropewalk.bench.contenders import NATIVE, Broken
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.victim import NAP_SECONDS

LIMIT = 30.0
Victim = Popen[str]


def killed(length: int, rounds: int, seconds: float, folder: str) -> Measured:
    """Rounds of a chain left alone and of one whose process is killed halfway."""
    return {NATIVE: [{"seconds_lost": _round(length, folder)} for _ in turns(rounds, seconds)]}


def _round(length: int, folder: str) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        undisturbed = _undisturbed(os.path.join(place, "undisturbed.db"), length)
        return _disturbed(os.path.join(place, "disturbed.db"), length) - undisturbed


def _undisturbed(db: str, length: int) -> float:
    with _started(db, length) as victim:
        return -_heard(victim, "requested") + _heard(victim, "ended")


def _disturbed(db: str, length: int) -> float:
    with _started(db, length) as victim:
        words = _words(victim, "requested")
        for _ in range(length // 2):
            _words(victim, "nap")
        # In the middle of a node: half of its work is done, and lost.
        time.sleep(NAP_SECONDS / 2)
        victim.kill()
        victim.wait()
    with _started(db, length, words[1]) as heir:
        return _heard(heir, "ended") - float(words[-1])


@contextmanager
def _started(db: str, length: int, *execution: str) -> Iterator[Victim]:
    """The process, gone at the end whatever happens; one that hangs is killed, and its silence is noticed."""
    command = [sys.executable, "-m", "ropewalk.bench.victim", db, str(length), *execution]
    with Popen(command, stdout=PIPE, text=True) as victim:
        watchdog = threading.Timer(LIMIT, victim.kill)
        watchdog.start()
        try:
            yield victim
            victim.wait()
        finally:
            watchdog.cancel()
            victim.kill()


def _heard(victim: Victim, word: str) -> float:
    """When the process said the word."""
    return float(_words(victim, word)[-1])


def _words(victim: Victim, word: str) -> list[str]:
    """The next line that begins with the word."""
    assert victim.stdout is not None
    for line in victim.stdout:
        words = line.split()
        if words[0] == word:
            return words
    raise Broken(f"a process ended, or was killed after {LIMIT:g} s, before it said {word!r}")
