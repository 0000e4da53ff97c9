"""How a command ends, for scripts."""

from enum import IntEnum

from ropewalk.core.errors import RopewalkError, Unavailable, Unreadable
from ropewalk.core.state import ExecutionState
from ropewalk.store.errors import IncompatibleStore, NotADatabase, StoreCorrupted


class Code(IntEnum):
    """The exit codes; `ropewalk --help` tells them."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    STOPPED = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130


_STORE = (Unavailable, Unreadable, NotADatabase, StoreCorrupted, IncompatibleStore)
_STATES = {
    ExecutionState.FAILED: Code.FAILED,
    ExecutionState.CANCELLED: Code.STOPPED,
    ExecutionState.TIMEOUT: Code.STOPPED,
}


def code_of(error: RopewalkError) -> Code:
    """What an error makes of a command."""
    return Code.UNAVAILABLE if isinstance(error, _STORE) else Code.BAD_INPUT


def code_for(state: ExecutionState) -> Code:
    """What the end of an execution makes of the command that waited for it."""
    return _STATES.get(state, Code.OK)
