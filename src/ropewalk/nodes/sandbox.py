"""The sandbox for code of users: a piece of code and JSON go in, JSON comes out.

This is all that the rest of Ropewalk knows of it. The code is never in this process: see `sandboxed.py`.
"""

from functools import lru_cache
from importlib.util import find_spec
from typing import Final

from msgspec import to_builtins

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.limits import MIB, Limits
from ropewalk.nodes.processes import Processes
from ropewalk.nodes.sandboxed import GRACE, Code, Ran, plain

MOST_SANDBOXES: Final = 4
LARGEST_MEMORY: Final = 256 * MIB
OUTER: Final = Limits(memory=LARGEST_MEMORY + 768 * MIB, files=64)
"""The limits of the process that drives the interpreter and of the interpreter; no code can ask for more."""
TO_AND_FRO: Final = 1.0
"""How long values may take on their way in and out, beside the time of the code (s)."""
PER_MIB: Final = 1.0
MISSING: Final = "code.python needs the extra `code`: pip install 'ropewalk[code]'"


def is_there() -> bool:
    """Whether the interpreter is installed."""
    return find_spec("pydantic_monty") is not None


class Sandboxes:
    """Runs code, each piece in a sandbox of its own; at most so many at a time."""

    def __init__(self, most: int = MOST_SANDBOXES) -> None:
        self._processes = Processes(most, closed=True)

    async def run(self, code: Code, size: int = 0) -> Ran:
        """What the code gives. NodeFailure for what it does wrong, ProcessDied if its process does not survive it.

        `size` is about how large the inputs are, in bytes.
        """
        if not is_there():
            raise NodeFailure.permanent(MISSING)
        longest = code.seconds + GRACE + TO_AND_FRO + PER_MIB * size / MIB
        given = {"code": to_builtins(code)}
        try:
            told = await self._processes.call("ropewalk.nodes.sandboxed:run", given, OUTER, longest)
        except TimeoutError:
            raise NodeFailure.timeout(f"the sandbox did not answer in {longest:g} s and was killed") from None
        return Ran(told["value"], told["printed"])

    async def close(self) -> None:
        """Ends every sandbox."""
        await self._processes.close()


@lru_cache(maxsize=256)
def syntax_problem(source: str) -> str | None:
    """What is wrong with the syntax of the code, with its line, if anything is; nothing of it is executed.

    The interpreter reads everything before it executes the first line, and that is one which ends it.
    """
    import pydantic_monty

    limits: pydantic_monty.ResourceLimits = {"max_feed_duration_secs": 0.5, "max_memory": 64 * MIB}
    try:
        with (
            pydantic_monty.Monty(max_processes=1, request_timeout=2.0) as pool,
            pool.checkout(limits=limits) as session,
        ):
            session.feed_run(f"raise StopIteration\n{source}", print_callback=pydantic_monty.CollectString(1_000))
    except pydantic_monty.MontyCrashedError:
        return "the sandbox cannot read it: it is too complex"
    except (pydantic_monty.MontySyntaxError, pydantic_monty.MontyRuntimeError) as error:
        if isinstance(error.exception(), StopIteration):
            return None
        frames = error.traceback()
        where = f"line {max(1, frames[-1].line - 1)}: " if frames else ""
        return where + plain(str(error)).removeprefix("NotImplementedError: ")
    return None
