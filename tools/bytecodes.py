"""How many operations of Python an execution takes, function by function: `python -m tools.bytecodes [CONTENDER]`.

Unlike times they do not move with the machine, so a change can be judged on a busy one. What C does is not in them.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import uvloop

from ropewalk.bench.child import at_once
from ropewalk.bench.contenders import CONTENDERS, NATIVE, PYTHON, opened
from ropewalk.bench.shapes import diamond, single
from ropewalk.engines.native import hands

SHAPES = {"diamond": diamond, "single": single}
WARM_UP = 200
# Counting makes everything many times slower: by the clock every turn of the loop would be too long.
hands.LONGEST_TURN = hands.NEVER


class Counting:
    """Counts what is carried out on this thread while it is on."""

    def __init__(self) -> None:
        self.operations: Counter[CodeType] = Counter()
        self.calls: Counter[CodeType] = Counter()

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            self.calls[frame.f_code] += 1
        elif event == "opcode":
            self.operations[frame.f_code] += 1
        return self.trace


async def count(contender: str, shape: str, executions: int) -> Counting:
    """What so many executions at once take, after a warm-up."""
    counting = Counting()
    with tempfile.TemporaryDirectory() as place:
        async with opened(contender, str(Path(place) / "bytecodes.db")) as prepare:
            execute = await prepare(SHAPES[shape]())
            await at_once(execute, WARM_UP)
            sys.settrace(counting.trace)
            try:
                await asyncio.gather(*[execute() for _ in range(executions)])
            finally:
                sys.settrace(None)
    return counting


def table(counting: Counting, executions: int, lines: int) -> Iterator[str]:
    """Per execution: the sums, then the functions that take most."""
    operations, calls = counting.operations, counting.calls
    yield f"{operations.total() / executions:8.0f} {calls.total() / executions:8.1f}  all: bytecodes, calls"
    for code, taken in operations.most_common(lines):
        name = f"{Path(code.co_filename).stem}.{code.co_qualname}"
        yield f"{taken / executions:8.1f} {calls[code] / executions:8.2f}  {name}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", nargs="?", default=NATIVE, choices=[*CONTENDERS, PYTHON])
    parser.add_argument("--shape", default="diamond", choices=SHAPES)
    parser.add_argument("--executions", type=int, default=100)
    parser.add_argument("--lines", type=int, default=40)
    asked = parser.parse_args()
    counted = uvloop.run(count(asked.contender, asked.shape, asked.executions))
    print("\n".join(table(counted, asked.executions, asked.lines)))
