"""Node types of well-known services, declared in the files beside this one; `docs/node-types.md` says how.

The next one is twenty lines in a file, its name in `nodes/builtin.py`, an example, and a test that answers as the
service does.
"""

from functools import cache, partial
from importlib.resources import files

from ropewalk.documents import load_document
from ropewalk.nodes.declared import DeclaredNode
from ropewalk.nodes.declaring import types_of


def __getattr__(name: str) -> "partial[DeclaredNode]":
    """What makes the preset of this name, such as `slack.send`."""
    if "." not in name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(_preset, name)


def _preset(name: str) -> DeclaredNode:
    return _presets(name.partition(".")[0])[name]


@cache
def _presets(service: str) -> dict[str, DeclaredNode]:
    """The presets of a service by name."""
    text = files(__name__).joinpath(f"{service}.yaml").read_text(encoding="utf-8")
    return {each.name: each for each in types_of(load_document(text, name=f"{service}.yaml").value)}
