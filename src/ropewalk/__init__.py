"""Ropewalk: a durable workflow engine.

Nodes run at least once, results are recorded once, stale writers are refused.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk.authoring import execution, index, item, last
    from ropewalk.client import AsyncClient, Client
    from ropewalk.core.errors import (
        Conflict,
        ExecutionEnded,
        Forbidden,
        Invalid,
        InvalidTransition,
        NotFound,
        RopewalkError,
        Unauthenticated,
        Unavailable,
    )
    from ropewalk.local import LocalEngine, LocalExecution, open, run  # noqa: A004
    from ropewalk.nodes.base import NodeContext, NodeFailure, NodeType, Output
    from ropewalk.nodes.declaring import load_node_types
    from ropewalk.nodes.function import node
    from ropewalk.workflow import Workflow

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "ExecutionEnded",
    "Forbidden",
    "Invalid",
    "InvalidTransition",
    "LocalEngine",
    "LocalExecution",
    "NodeContext",
    "NodeFailure",
    "NodeType",
    "NotFound",
    "Output",
    "RopewalkError",
    "Unauthenticated",
    "Unavailable",
    "Workflow",
    "execution",
    "index",
    "item",
    "last",
    "load_node_types",
    "node",
    "open",
    "run",
]

_HOMES = {
    "ropewalk.authoring": ("execution", "index", "item", "last"),
    "ropewalk.client": ("AsyncClient", "Client"),
    "ropewalk.core.errors": (
        "Conflict",
        "ExecutionEnded",
        "Forbidden",
        "Invalid",
        "InvalidTransition",
        "NotFound",
        "RopewalkError",
        "Unauthenticated",
        "Unavailable",
    ),
    "ropewalk.local": ("LocalEngine", "LocalExecution", "open", "run"),
    "ropewalk.nodes.base": ("NodeContext", "NodeFailure", "NodeType", "Output"),
    "ropewalk.nodes.declaring": ("load_node_types",),
    "ropewalk.nodes.function": ("node",),
    "ropewalk.workflow": ("Workflow",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is: the command line starts without the HTTP client of a node."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
