"""Node types by the modules that define them, or the files that declare them, for commands and for programs alike."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from ropewalk.core.errors import InvalidDefinition, RopewalkError
from ropewalk.nodes.base import NodeType, Registry
from ropewalk.nodes.functions import Functions
from ropewalk.wiring import node_types
from ropewalk.workflow import Workflow

DECLARATIONS = (".yaml", ".yml", ".json")


def is_file(name: str) -> bool:
    """Whether node types are named by a file, and not by a module that is looked for."""
    return name.endswith((".py", *DECLARATIONS))


def load_module(name: str) -> ModuleType:
    """A module by its name, looked for here too, or a .py file."""
    for folder in (str(Path(name).resolve().parent) if name.endswith(".py") else "", str(Path.cwd())):
        if folder and folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        return _load(name)
    except (RopewalkError, TypeError, ValueError, ImportError, SyntaxError, NameError, OSError) as error:
        raise InvalidDefinition(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def _load(name: str) -> ModuleType:
    """The module, once: one file under two names would be two sets of node types."""
    if name.endswith(".py"):
        return _loaded_from(str(Path(name).resolve())) or _load_file(Path(name))
    spec = importlib.util.find_spec(name)
    return _loaded_from(spec.origin if spec else None) or importlib.import_module(name)


def _loaded_from(file: str | None) -> ModuleType | None:
    modules = (each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == file)
    return None if file is None else next(modules, None)


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Known by its name before it runs: type hints are looked up there, and a second import must find this one.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


class Catalogue(Struct):
    """The node types and functions a worker knows."""

    types: Registry
    functions: Functions | None = None


def catalogue(modules: Iterable[str], types: Iterable[NodeType] = ()) -> Catalogue:
    """Everything built in, installed, and defined by these modules, and these types."""
    found, functions = defined_by(modules, types)
    return Catalogue(node_types(found), functions)


def defined_by(modules: Iterable[str], types: Iterable[NodeType] = ()) -> tuple[list[NodeType], Functions | None]:
    """These types and those that the modules define, and the functions they register, if they do."""
    found: dict[str, NodeType] = {}
    functions: Functions | None = None
    for each in types:
        found[each.name] = _only(found.get(each.name), each)
    for name in dict.fromkeys(modules):
        for value in _values_of(name):
            if isinstance(value, Functions):
                functions = value
            for node_type in _types_in(value):
                found[node_type.name] = _only(found.get(node_type.name), node_type)
    return list(found.values()), functions


def _values_of(name: str) -> list[object]:
    """What a module has, or a file declares."""
    if name.endswith(DECLARATIONS):
        return list(_declared_in(str(Path(name).resolve())))
    return list(vars(load_module(name)).values())


@cache
def _declared_in(file: str) -> tuple[NodeType, ...]:
    """The types of a file, once, as those of a module."""
    from ropewalk.nodes.declaring import load_node_types  # here, since few projects declare any

    return tuple(load_node_types(file))


def _types_in(value: object) -> list[NodeType]:
    if isinstance(value, Workflow):
        return value.node_types
    return [value] if isinstance(value, NodeType) else []


def _only(known: NodeType | None, node_type: NodeType) -> NodeType:
    if known is not None and known is not node_type:
        raise InvalidDefinition(f"two node types are called {node_type.name!r}: rename one of them")
    return node_type


class BroughtModules:
    """Loads the modules that other commands bring to this process; `names` has all whose node types it knows."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def __call__(self, modules: tuple[str, ...], folder: str) -> tuple[list[NodeType], Functions | None]:
        """What these modules define, looked for in `folder` too."""
        if folder not in sys.path:
            sys.path.append(folder)
            # The processes that this one starts, the one that goes on after it among them, find the modules there too.
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), folder)))
        found = defined_by(modules)
        self.names = tuple(dict.fromkeys((*self.names, *modules)))
        return found
