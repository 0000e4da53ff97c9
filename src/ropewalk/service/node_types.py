"""Node types: as the API and the command line show them, and those a caller brings to a process that executes."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from ropewalk.core.definition import NodeTypeInfo
from ropewalk.core.errors import Conflict

if TYPE_CHECKING:
    from ropewalk.engines.publishing import Publishing
    from ropewalk.nodes.base import NodeType, Registry
    from ropewalk.nodes.functions import Functions

Json = dict[str, Any]
Load: TypeAlias = "Callable[[tuple[str, ...], str], tuple[list[NodeType], Functions | None]]"
"""Loads modules by their names, from a folder too: the node types and the functions that they define."""


def shown_type(info: NodeTypeInfo) -> Json:
    """A node type as JSON: what it is for, its ports, and the schemas of its parameters and its output."""
    about = info.about
    return {
        "name": info.name,
        "title": about.title,
        "description": info.summary,
        "category": about.category,
        "icon": about.icon,
        "keywords": list(about.keywords),
        "ports": None if info.ports is None else list(info.ports),
        "portDescriptions": dict(about.ports),
        "isWait": info.is_wait,
        "parameters": info.parameters,
        "output": dict(about.output),
        "credentials": {slot: list(types) for slot, types in info.credentials.items()},
    }


class LoadedNodeTypes(Struct, frozen=True):
    """What became of modules that were brought: those that were not taken, and every node type that is known now."""

    refused: tuple[str, ...]
    types: tuple[str, ...]


class NodeTypeLoader(Struct, frozen=True):
    """How a process comes to know more node types than it was started with."""

    types: "Registry"
    functions: "Functions"
    load: Load

    async def take(self, modules: tuple[str, ...], folder: str, publishing: "Publishing", workspace: str) -> None:
        """Take the node types of these modules, all or none; runs that wait for one of them go on."""
        # In a thread: what a module imports may take long.
        found, functions = await asyncio.to_thread(self.load, modules, folder)
        self._require_same(found)
        for each in found:
            if self.types.get(each.name) is None:
                self.types.register(each)
                publishing.learnt(workspace, each.name)
        if functions is not None:
            self.functions.add_missing(functions)

    def _require_same(self, found: "Iterable[NodeType]") -> None:
        """One name means one node type, for executions that were started before too."""
        for each in found:
            known = self.types.get(each.name)
            if known is not None and known is not each:
                raise Conflict(
                    f"the process that executes has another node type {each.name!r}, from another file: rename one"
                )
