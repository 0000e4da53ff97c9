"""Which ports the edges of each node of a document can name, as far as that is known before anything has run."""

from typing import Any

from msgspec import Struct

from ropewalk.core.canonical import shown, step
from ropewalk.core.definition.node_type import ARRIVED_PORT, EXHAUSTED_PORT, EXPIRED_PORT, NodeTypeInfo
from ropewalk.core.definition.topology import ERROR_PORT

MOST_PORTS_SHOWN = 20
LONGEST_REASON = 300
_NO_PORT = f"a port cannot be named '{ERROR_PORT}', which is the edge of failures"


class Ports(Struct, frozen=True):
    """The ports of one node: its own, which may be unknown, and those of every node like it.

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
    own, wrong = _own_ports(node, node_type)
    if "forEach" in node:
        # Its items may each take another port, so that the node as a whole takes none.
        return Ports("a node with forEach", {}, (ERROR_PORT,), wrong)
    repeated = (EXHAUSTED_PORT,) if "repeat" in node else ()
    return Ports(node_type.name, own, (*_common_ports(node_type), *repeated), wrong)


def _common_ports(node_type: NodeTypeInfo) -> tuple[str, ...]:
    """The ports that every node like it has."""
    if not node_type.is_wait:
        return (ERROR_PORT,)
    return (ERROR_PORT, EXPIRED_PORT) if node_type.ports else (ERROR_PORT, ARRIVED_PORT, EXPIRED_PORT)


def _own_ports(node: dict[str, Any], node_type: NodeTypeInfo) -> tuple[dict[str, None] | None, str | None]:
    """The ports in their order, as far as they are known, and what is wrong with them."""
    parameters = node.get("with", {})
    if node_type.ports is not None:
        return dict.fromkeys(node_type.ports), None
    if node_type.ports_with is None or not isinstance(parameters, dict):
        return None, None
    try:
        own = _named(node_type.ports_with(parameters))
    except Exception as error:  # noqa: BLE001 -- a user's node type may raise anything
        why = step(f"{type(error).__name__}: {error}", LONGEST_REASON)
        return None, f"the node type {shown(node_type.name)} cannot say which ports these parameters give it: {why}"
    return own, _NO_PORT if own is not None and ERROR_PORT in own else None


def _named(ports: Any) -> dict[str, None] | None:
    """The ports, if a type answers with names as it should."""
    if ports is None:
        return None
    if isinstance(ports, str) or not all(isinstance(port, str) for port in ports):
        raise TypeError("ports_with must answer with a tuple of names, or with None")
    return dict.fromkeys(ports)
