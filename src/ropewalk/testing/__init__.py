"""Tests of workflows: an engine on a store that is thrown away, which skips time and takes stubs for node types.

def test_a_refund_that_no_one_approves_expires(ropewalk_engine):
    ropewalk_engine.stub("http.request", {"status": 200, "body": {"total": 250}})
    execution = ropewalk_engine.start(Workflow.load("refund.yaml"), {"orderId": "7"})

    assert execution.wait()["state"] == "FAILED"        # two days later, in milliseconds

The fixture comes with the pytest plugin (`plugin.py`); async tests use `async with ropewalk.testing.open() as engine`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk.testing.attempts import attempt
    from ropewalk.testing.engine import AsyncTestEngine, AsyncTestExecution, TestEngine, TestExecution
    from ropewalk.testing.opening import open, open_blocking  # noqa: A004
    from ropewalk.testing.skipping import StillWaiting

__all__ = [
    "AsyncTestEngine",
    "AsyncTestExecution",
    "StillWaiting",
    "TestEngine",
    "TestExecution",
    "attempt",
    "open",
    "open_blocking",
]

_HOME = {
    "AsyncTestEngine": "engine",
    "AsyncTestExecution": "engine",
    "StillWaiting": "skipping",
    "TestEngine": "engine",
    "TestExecution": "engine",
    "attempt": "attempts",
    "open": "opening",
    "open_blocking": "opening",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is: pytest loads the plugin also where no test uses it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
