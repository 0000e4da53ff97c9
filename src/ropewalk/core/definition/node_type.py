"""What a definition must know about a node type to check the nodes that use it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

EXPIRED_PORT = "expired"


class NodeTypeInfo(Struct, frozen=True):
    """A node type as an author sees it; `ports` is None when the node's parameters decide their names."""

    name: str
    ports: tuple[str, ...] | None = ()
    parameters: dict[str, Any] = {}
    is_wait: bool = False
    summary: str = ""


NodeTypes = Mapping[str, NodeTypeInfo]
