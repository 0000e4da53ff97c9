"""An exported workflow of n8n as it is read: nodes, connections, settings. Fields that are not what they should be are
taken as absent, so that anything which is a workflow at all can be imported."""

from math import isfinite
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.canonical import LARGEST_INTEGER, writable

JSON = Any

MOST_NODES: Final = 5_000
DEEPEST: Final = 40
LONGEST_WAIT: Final = 5_000
EXPECTED: Final = (
    'expected a workflow as n8n exports it: an object with a list "nodes" and an object "connections"'
)  # fmt: skip


class Node(Struct):
    """One node of the original."""

    name: str
    type: str
    version: float
    parameters: dict[str, JSON]
    credentials: dict[str, str]
    is_disabled: bool
    retry: dict[str, JSON] | None
    on_error: str
    notes: str
    runs_once: bool

    @property
    def kind(self) -> str:
        """The type without the package it comes from."""
        return self.type.rpartition(".")[2]


class Connection(Struct, frozen=True):
    """From an output of a node to an input of another; `kind` is `main`, or what a sub-node gives."""

    source: str
    kind: str
    output: int
    target: str
    input: int


class Source(Struct):
    """The whole workflow."""

    name: str
    nodes: list[Node]
    connections: list[Connection]
    settings: dict[str, JSON]
    notes: list[str]


def read(document: JSON) -> Source:
    """The workflow in a document; ValueError if it is none."""
    document = _unwrapped(document)
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise ValueError(EXPECTED)
    if not isinstance(document.get("connections"), dict):
        raise ValueError(f'{EXPECTED}; there is no object "connections"')
    if len(document["nodes"]) > MOST_NODES:
        raise ValueError(f"it has more than {MOST_NODES:,} nodes")
    notes: list[str] = []
    nodes = _nodes(document["nodes"], notes)
    known = {node.name: node for node in nodes}
    connections = _connections(document["connections"], known, notes)
    name = clean(document.get("name"))
    title = name if isinstance(name, str) and name.strip() else "imported"
    return Source(title, nodes, connections, _object(clean(document.get("settings"))), notes)


def _unwrapped(document: JSON) -> JSON:
    """The one workflow of an export of several."""
    if isinstance(document, list):
        if len(document) != 1:
            raise ValueError(f"{EXPECTED}; this is a list of {len(document)} documents: give one at a time")
        return document[0]
    if isinstance(document, dict) and "nodes" not in document and isinstance(document.get("workflow"), dict):
        return document["workflow"]
    return document


def _nodes(found: list[JSON], notes: list[str]) -> list[Node]:
    nodes: dict[str, Node] = {}
    for at, each in enumerate(found):
        node = _node(each)
        if node is None:
            notes.append(f"nodes[{at}] has no name or no type: left out")
        elif node.name in nodes:
            notes.append(f"nodes[{at}] has the name {node.name!r} of another node: left out")
        else:
            nodes[node.name] = node
    return list(nodes.values())


def _node(found: JSON) -> Node | None:
    name, kind = (clean(found.get("name")), clean(found.get("type"))) if isinstance(found, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(kind, str) or not name or not kind:
        return None
    version = found.get("typeVersion")
    return Node(
        name=name,
        type=kind,
        version=float(version) if isinstance(version, int | float) and abs(version) < 1_000 else 1.0,
        parameters=_object(clean(found.get("parameters"))),
        credentials=_credentials(found.get("credentials")),
        is_disabled=found.get("disabled") is True,
        retry=_retry(found),
        on_error=_on_error(found),
        notes=found["notes"] if isinstance(found.get("notes"), str) else "",
        runs_once=found.get("executeOnce") is True,
    )


def clean(value: JSON, depth: int = 0) -> JSON:
    """A value as our documents take it: what they have no form for, or is too deep in it, is null or text."""
    match value:
        case str():
            return writable(value)
        case bool() | None:
            return value
        case int():
            return value if abs(value) <= LARGEST_INTEGER else str(value) if abs(value) < 10**300 else None
        case float():
            return value if isfinite(value) else None
        case dict() if depth < DEEPEST:
            return {writable(str(key)): clean(each, depth + 1) for key, each in value.items()}
        case list() if depth < DEEPEST:
            return [clean(each, depth + 1) for each in value]
        case _:
            return None


def _object(found: JSON) -> dict[str, JSON]:
    return found if isinstance(found, dict) else {}


def _credentials(found: JSON) -> dict[str, str]:
    """The names of credentials by their types; there is nothing else of them in an export."""
    named: dict[str, str] = {}
    for kind, each in _object(found).items():
        name = clean(each.get("name") if isinstance(each, dict) else each)
        named[str(kind)] = name if isinstance(name, str) and name else str(kind)
    return named


def _retry(found: dict[str, JSON]) -> dict[str, JSON] | None:
    if found.get("retryOnFail") is not True:
        return None
    tries = whole(found.get("maxTries"), 2, 5, 3)
    wait = whole(found.get("waitBetweenTries"), 0, LONGEST_WAIT, 1_000)
    return {"maxAttempts": tries, "delay": f"{wait}ms", "factor": 1, "jitter": 0}


def _on_error(found: dict[str, JSON]) -> str:
    chosen = found.get("onError")
    if isinstance(chosen, str):
        return chosen
    return "continueRegularOutput" if found.get("continueOnFail") is True else "stopWorkflow"


def whole(found: JSON, least: int, most: int, default: int) -> int:
    """A whole number between two bounds."""
    if isinstance(found, bool) or not isinstance(found, int | float) or found != found:
        return default
    return int(max(least, min(most, found)))


def _connections(found: dict[str, JSON], known: dict[str, Node], notes: list[str]) -> list[Connection]:
    made: dict[Connection, None] = {}
    for name, kinds in found.items():
        source = writable(name)
        for kind, outputs in _object(kinds).items():
            for output, targets in enumerate(outputs if isinstance(outputs, list) else ()):
                for each in targets if isinstance(targets, list) else ():
                    connection = _connection(source, kind, output, each)
                    if connection is None or connection.source not in known or connection.target not in known:
                        notes.append(f"a connection from {source!r} leads to no node: left out")
                    else:
                        made[connection] = None
    return list(made)


def _connection(source: str, kind: str, output: int, found: JSON) -> Connection | None:
    target = clean(found.get("node")) if isinstance(found, dict) else None
    if not isinstance(target, str):
        return None
    return Connection(source, kind, output, target, whole(found.get("index"), 0, 1_000, 0))
