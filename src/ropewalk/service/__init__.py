"""The verbs that callers may use, and what they may read."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk.service.verbs import Service

__all__ = ["Service"]


def __getattr__(name: str) -> object:
    """Import the verbs when they are asked for: a process that only reads does without an engine."""
    if name != "Service":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("ropewalk.service.verbs").Service
