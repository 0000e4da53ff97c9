"""What a definition must know about a node type to check the nodes that use it."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

EXPIRED_PORT = "expired"


class NodeTypeInfo(Struct, frozen=True):
    """A node type as an author sees it; `ports` is None when the node's parameters decide their names.

    Then `ports_with` tells them from the parameters as written, or None where only a run will show them.
    """

    name: str
    ports: tuple[str, ...] | None = ()
    parameters: dict[str, Any] = {}
    is_wait: bool = False
    summary: str = ""
    ports_with: Callable[[Mapping[str, Any]], tuple[str, ...] | None] | None = None


NodeTypes = Mapping[str, NodeTypeInfo]
