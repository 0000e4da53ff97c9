"""The machine that decides what an execution does next."""

from ropewalk.core.execution.machine import Execution

__all__ = ["Execution"]
