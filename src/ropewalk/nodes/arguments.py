"""The arguments of a node that is written in Python: which configure the node, and which are its type's parameters."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from keyword import iskeyword
from typing import Any

from ropewalk.nodes.function import FunctionNode

# What Python calls the fields that configure a node; everything else given by name is a parameter of its type.
OPTIONS = {
    "name": "name",
    "for_each": "forEach",
    "concurrency": "concurrency",
    "failure_tolerance": "failureTolerance",
    "on_item_failure": "onItemFailure",
    "dead_letters": "deadLetters",
    "retry": "retry",
    "repeat": "repeat",
    "timeout": "timeout",
    "cache": "cache",
    "pool": "pool",
    "credentials": "credentials",
    "ui": "ui",
}
_WIRING = ("after", "on")
_OF_UNDOING = ("retry", "timeout", "pool", "credentials")


def parameter(key: str) -> str:
    """The parameter a keyword argument means: `for_` and `from_` stand for what Python cannot spell."""
    bare = key.removesuffix("_")
    return bare if iskeyword(bare) else key


def undoing(node_type: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a node that undoes another, from what is given by name."""
    options = {key: value for key, value in given.items() if key in _OF_UNDOING}
    inputs = {parameter(key): value for key, value in given.items() if key not in _OF_UNDOING}
    if isinstance(node_type, FunctionNode):
        check_call(node_type, inputs, options)
        options = {key: value for key, value in defaults(node_type).items() if key in _OF_UNDOING} | options
    return {**options, "with": inputs} if inputs else options


def check_call(node_type: FunctionNode[..., Any], inputs: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuses, as a call would, arguments that the function does not take or that it misses."""
    model = node_type.Parameters
    fields = {} if model is None else {field.alias or name: field for name, field in model.model_fields.items()}
    for key in options:
        if key in fields and key not in inputs:
            raise TypeError(f"{node_type.name}: {key} configures the node; give the parameter as with_={{{key!r}: …}}")
    for key in inputs:
        if key not in fields:
            raise TypeError(f"{node_type.name} has no parameter {key!r}{hint(key, [*fields, *OPTIONS, *_WIRING])}")
    missing = [name for name, field in fields.items() if field.is_required() and name not in inputs]
    if missing:
        raise TypeError(f"{node_type.name} needs {', '.join(missing)}")


def defaults(node_type: FunctionNode[..., Any]) -> dict[str, Any]:
    for option in node_type.defaults:
        if option not in OPTIONS:
            raise TypeError(f"{node_type.name}: @node has no option {option!r}{hint(option, OPTIONS)}")
    return dict(node_type.defaults)


def hint(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
