"""Processes that are measured: told what to do by lines on their input, saying what happens by lines on their output.

Times are of the monotonic clock, which all processes of a machine share.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen

from ropewalk.bench.contenders import Broken

LIMIT = 30.0


class Child:
    """A process of ours."""

    def __init__(self, process: Popen[str]) -> None:
        self.process = process

    def words(self, word: str) -> list[str]:
        """The next line that begins with the word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            words = line.split()
            if words[0] == word:
                return words
        raise Broken(f"a process ended, or was killed after {LIMIT:g} s, before it said {word!r}")

    def when(self, word: str) -> float:
        """When the process says the word: the last thing on the line."""
        return float(self.words(word)[-1])

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Broken(f"a process ended, or was killed after {LIMIT:g} s, before it was told {line!r}") from None

    def dismiss(self) -> None:
        """Nothing more will be said to it: it leaves by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def started(module: str, *arguments: str) -> Iterator[Child]:
    """The process, gone at the end in any case; one that hangs is killed, and its silence is noticed."""
    command = [sys.executable, "-m", f"ropewalk.bench.{module}", *arguments]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        watchdog = threading.Timer(LIMIT, process.kill)
        watchdog.start()
        child = Child(process)
        try:
            yield child
            child.dismiss()
            process.wait()
        finally:
            watchdog.cancel()
            process.kill()


def say(*words: object) -> None:
    """For such a process: one line."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()
