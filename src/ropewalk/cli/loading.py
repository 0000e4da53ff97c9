"""Workflows and node types by the names people give them: a file, `module:workflow`, a module of nodes."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from ropewalk.cli.complaint import InvalidFile
from ropewalk.cli.project import Project
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Invalid, InvalidDefinition, InvalidInput, RopewalkError
from ropewalk.documents import Document, load_document, read_document
from ropewalk.nodes.base import NodeType, Registry
from ropewalk.nodes.functions import Functions
from ropewalk.wiring import node_types
from ropewalk.workflow import Workflow


class Loaded(Struct):
    """A workflow to execute; `document` is the file it stands in, `modules` where its functions are."""

    value: JSON
    document: Document | None = None
    modules: tuple[str, ...] = ()

    def explain(self, error: Invalid) -> Invalid:
        """The same refusal, with the lines of the file if there is one."""
        return error if self.document is None else InvalidFile(error, self.document)


def load_workflow(name: str) -> Loaded:
    """The workflow in a YAML or JSON file, or the one at `module:name` (`file.py:name`, `:workflow` if left out)."""
    module, colon, attribute = name.rpartition(":")
    if colon and not Path(name).exists():
        return _from_module(module, attribute)
    if name.endswith(".py"):
        return _from_module(name, "workflow")
    try:
        document = read_document(name)
    except FileNotFoundError as error:
        raise RopewalkError(f"there is no file {name}: name a workflow file, or MODULE:WORKFLOW") from error
    return Loaded(document.value, document)


def _from_module(name: str, attribute: str) -> Loaded:
    found = getattr(load_module(name), attribute, None)
    if not isinstance(found, Workflow):
        raise RopewalkError(f"{name} has no workflow {attribute!r}: name a global that is a ropewalk.Workflow")
    return Loaded(found.document(), None, (name,))


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


def catalogue(project: Project, *modules: str) -> Catalogue:
    """Everything built in, installed, and defined by the project's modules and these."""
    found: dict[str, NodeType] = {}
    functions: Functions | None = None
    for name in dict.fromkeys((*project.nodes, *modules)):
        for value in list(vars(load_module(name)).values()):
            if isinstance(value, Functions):
                functions = value
            for node_type in _types_in(value):
                found[node_type.name] = _only(found.get(node_type.name), node_type)
    return Catalogue(node_types(found.values()), functions)


def _types_in(value: object) -> list[NodeType]:
    if isinstance(value, Workflow):
        return value.node_types
    return [value] if isinstance(value, NodeType) else []


def _only(known: NodeType | None, node_type: NodeType) -> NodeType:
    if known is not None and known is not node_type:
        raise InvalidDefinition(f"two node types are called {node_type.name!r}: rename one of them")
    return node_type


# Values on the command line


def json_value(text: str, what: str) -> JSON:
    """The JSON of an option: written out, `@file`, or `-` for what comes in."""
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        return load_document(Path(text[1:]).read_text(encoding="utf-8"), name=text[1:]).value
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        raise InvalidInput(f"{what} is no JSON ({error}): quote text like '\"this\"', or use @file") from error


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def assignments(pairs: tuple[str, ...], option: str) -> dict[str, JSON]:
    """`key=value` pairs; a value that is no JSON is text."""
    return dict(_assignment(pair, option) for pair in pairs)


def _assignment(pair: str, option: str) -> tuple[str, JSON]:
    key, sign, value = pair.partition("=")
    if not sign or not key:
        raise InvalidInput(f"{option} {pair}: write it as {option} key=value")
    try:
        return key, json.loads(value, parse_constant=_no_number)
    except ValueError:
        return key, value
