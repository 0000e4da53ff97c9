"""The nodes that come before one: those that its expressions may name."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from ropewalk.importing.n8n.flows import Flow
from ropewalk.importing.n8n.reading import Connection


class Before(Mapping[str, Flow]):
    """What goes out of the nodes that come before one; looked for when an expression names the first of them."""

    def __init__(self, name: str, arriving: Mapping[str, list[Connection]], flows: Mapping[str, Flow]) -> None:
        self._name = name
        self._arriving = arriving
        self._flows = flows

    @cached_property
    def _found(self) -> dict[str, None]:
        found: dict[str, None] = {}
        waiting = [self._name]
        while waiting:
            for each in self._arriving.get(waiting.pop(), ()):
                if each.source not in found:
                    found[each.source] = None
                    waiting.append(each.source)
        return found

    def __getitem__(self, name: str) -> Flow:
        if name not in self._found:
            raise KeyError(name)
        return self._flows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
