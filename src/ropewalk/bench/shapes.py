"""What is executed: a few graphs, and a node that does nothing and returns about 100 bytes."""

from typing import Any

from msgspec import Struct

NODE_TYPE = "bench.work"
OUTPUT = {"result": "x" * 86}


async def work() -> dict[str, str]:
    """Does nothing, and returns about 100 bytes."""
    return OUTPUT


class Shape(Struct, frozen=True):
    """A graph of nodes 0 … size - 1."""

    name: str
    size: int
    edges: tuple[tuple[int, int], ...] = ()

    def document(self, node_type: str = NODE_TYPE) -> dict[str, Any]:
        """The same graph as a workflow document."""
        return {
            "ropewalk": 1,
            "name": self.name,
            "nodes": [{"id": f"n{node}", "type": node_type} for node in range(self.size)],
            "edges": [{"from": f"n{source}", "to": f"n{target}"} for source, target in self.edges],
        }


def single() -> Shape:
    return Shape("single", 1)


def chain(length: int) -> Shape:
    return Shape(f"chain-{length}", length, tuple((node, node + 1) for node in range(length - 1)))


def fan(width: int) -> Shape:
    """One node, then `width` at once, then one that joins them."""
    middle = range(1, width + 1)
    out, back = ((0, node) for node in middle), ((node, width + 1) for node in middle)
    return Shape(f"fan-{width}", width + 2, (*out, *back))


def diamond() -> Shape:
    """a → b, c, d → e"""
    return Shape("diamond", 5, fan(3).edges)
