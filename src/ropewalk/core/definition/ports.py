"""Which ports the edges of each node of a document can name, as far as that is known before anything has run."""

from typing import Any

from msgspec import Struct

from ropewalk.core.canonical import shown
from ropewalk.core.definition.node_type import EXPIRED_PORT, NodeTypeInfo
from ropewalk.core.definition.topology import ERROR_PORT

MOST_PORTS_SHOWN = 20
_NO_PORT = f"a port cannot be named '{ERROR_PORT}', which is the edge of failures"


class Ports(Struct, frozen=True):
    """The ports of one node: its own, which nobody may know, and those of every node like it.

    `wrong` is what its own have wrong with them.
    """

    whose: str
    own: dict[str, None] | None
    common: tuple[str, ...]
    wrong: str | None = None

    def refusal(self, port: str) -> str | None:
        """What is wrong with an edge that names this port, if anything certainly is."""
        if self.own is None or port in self.own or port in self.common:
            return None
        names = list(self.own)[:MOST_PORTS_SHOWN]
        middle = [f"… ({len(self.own)} ports)"] if len(self.own) > MOST_PORTS_SHOWN else []
        return f"{self.whose} has no port {shown(port)}; it has {', '.join([*names, *middle, *self.common])}"


def ports_of(node: dict[str, Any], node_type: NodeTypeInfo) -> Ports:
    """The ports of a node of this type, with the parameters it has in the document."""
    own = _own_ports(node, node_type)
    wrong = None if own is None or ERROR_PORT not in own else _NO_PORT
    if "forEach" in node:
        # Its items may each take another port, so that the node as a whole takes none.
        return Ports("a node with forEach", {}, (ERROR_PORT,), wrong)
    common = (ERROR_PORT, EXPIRED_PORT) if node_type.is_wait else (ERROR_PORT,)
    return Ports(node_type.name, None if own is None else dict.fromkeys(own), common, wrong)


def _own_ports(node: dict[str, Any], node_type: NodeTypeInfo) -> tuple[str, ...] | None:
    parameters = node.get("with", {})
    if node_type.ports is not None or node_type.ports_with is None or not isinstance(parameters, dict):
        return node_type.ports
    return node_type.ports_with(parameters)
