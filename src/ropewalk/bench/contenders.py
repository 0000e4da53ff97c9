"""Who is measured: an engine, and the floor beneath it. Both turn a shape into something that executes it once."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from ropewalk.bench.shapes import Shape
from ropewalk.core.errors import RopewalkError

NATIVE: Final = "native"
FLOOR: Final = "floor"
CONTENDERS: Final = (NATIVE, FLOOR)
NATIVE_1: Final = "native-1"
"""One worker that executes what another process accepts: everything goes through the queue."""
NATIVE_2: Final = "native-2"
"""Two workers that share what another process accepts."""
NATIVE_2_OWN: Final = "native-2-own"
"""Two workers, each of which accepts one half and executes it."""
NATIVE_4: Final = "native-4"
"""Four workers that want the same."""
PYTHON: Final = "python"
"""A Python program that has opened an engine."""
HTTP: Final = "http"
"""A program that asks a server."""
FLEET: Final = "fleet"
"""A program that asks a server that accepts only, beside workers."""
FLEET_1: Final = "fleet-1"
"""The same with one worker."""
FLEET_2: Final = "fleet-2"
"""The same with two."""
DOORS: Final = (PYTHON, HTTP, FLEET)

Execute = Callable[[], Awaitable[None]]
"""From the request to the result, once."""
Prepare = Callable[[Shape], Awaitable[Execute]]


class Broken(RopewalkError):
    """A measurement that says nothing: what was measured did not do its work."""


def opened(contender: str, db: str) -> AbstractAsyncContextManager[Prepare]:
    """The contender of this name on a new store."""
    # Imported when asked for: a process of its own holds only what it measures.
    if contender == FLOOR:
        from ropewalk.bench import floor

        return floor.opened(db)
    if contender == PYTHON:
        from ropewalk.bench import door_python

        return door_python.opened(db)
    from ropewalk.bench import native

    return native.opened(db)
