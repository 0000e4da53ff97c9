"""Holds recorded histories to the promises of the engine, independently of the machine that made them.

From the plan and the events alone it works out again which edges are decided, which attempt is under way, what a
retry may cost, and compares. Every rule is one function that says in its docstring what it takes its invariant to
mean; `table.py` lists them.
"""

from ropewalk.checker.capacity import Limits, Sharing
from ropewalk.checker.history import Effect, History, Violation
from ropewalk.checker.table import INVARIANTS, Invariant, check, check_growth, check_together

__all__ = [
    "INVARIANTS",
    "Effect",
    "History",
    "Invariant",
    "Limits",
    "Sharing",
    "Violation",
    "check",
    "check_growth",
    "check_together",
]
