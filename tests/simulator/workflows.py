"""Small random workflows that use everything an execution can do."""

from functools import lru_cache
from random import Random
from typing import Any

from msgspec import Struct

from ropewalk.core.definition import Definition, NodeTypeInfo
from ropewalk.core.plan import Plan

PLANS_SHARED_BY = 4
"""So many neighbouring seeds walk the same workflows: compiling costs as much as a short history."""

PORTS: dict[str, tuple[str, ...]] = {
    "task": (),
    "branch": ("left", "right"),
    "sleep": (),
    "ask": ("approved", "rejected"),
    "listen": (),
    "hear": (),
    "call": (),
}
WAITS = ("sleep", "ask", "listen", "hear", "call")
ANSWERED = ("sleep", "listen", "hear", "call")
NODE_TYPES = {name: NodeTypeInfo(name, ports, is_wait=name in WAITS) for name, ports in PORTS.items()}

KINDS = ("task",) * 8 + ("branch",) * 3 + WAITS
KINDS_OF_CHILDREN = ("task",) * 6 + ("branch", "sleep", "ask", "hear")
ITEMS = ("{{ input.items }}",) * 9 + ("{{ input.missing }}",)
KINDS_RETRIED: tuple[dict[str, Any], ...] = (
    {"on": ["TRANSIENT", "PERMANENT"]},
    {"on": ["TIMEOUT", "status:4xx"]},
    {"on": ["status:404", "TRANSIENT"], "when": "{{ attempt < 3 }}"},
    {"when": "{{ error.type != 'TIMEOUT' and attempt < 3 }}"},
    {"when": "{{ error.child == 'FAILED' or error.status == 404 }}"},
    {"when": "{{ error.status + 1 == 405 }}"},
)
KINDS_HANDLED = (
    "{{ error.type == 'TRANSIENT' }}",
    "{{ error.type == 'PERMANENT' and error.status == null }}",
    "{{ error.status == 404 or error.child == 'FAILED' }}",
    "{{ error.status + 1 == 405 }}",
    "{{ input.items[0] == 0 and error.attempts > 1 }}",
)
"""What edges and retries ask of an error; some cannot be evaluated for every error."""
CONDITIONS = (
    {"until": "{{ index >= 1 }}"},
    {"until": "{{ last != null and index > 1 }}"},
    {"while": "{{ index < 2 }}"},
    {"while": "{{ input.items[index] != null }}"},
    {"until": "{{ last == 'never' }}"},
    {"until": "{{ input.missing + index > 1 }}"},
)
BROKEN_OUTPUT = "{{ input.missing + 1 }}"


class Workflows(Struct, frozen=True):
    """What one world executes: top-level workflows, and those called by them."""

    tops: tuple[Plan, ...]
    children: tuple[Plan, ...]


def workflows_of(seed: int) -> Workflows:
    """The workflows of a world; neighbouring seeds share theirs."""
    return _workflows(seed // PLANS_SHARED_BY)


def forget_workflows() -> None:
    """A change of the rules changes what is remembered of the ways executions went."""
    _workflows.cache_clear()


@lru_cache(maxsize=2)
def _workflows(seed: int) -> Workflows:
    chance, closing = Random(f"workflows {seed}"), Random(f"closing {seed}")
    tops = [with_closing(closing, document(chance, KINDS, largest=10), KINDS) for _ in range(2)]
    below = KINDS_OF_CHILDREN
    children = [with_closing(closing, document(chance, below, largest=3), below) for _ in range(2)]
    return Workflows(tuple(map(_plan, tops)), tuple(map(_plan, children)))


def _plan(document: dict[str, Any]) -> Plan:
    return Plan(Definition(document))


def with_closing(chance: Random, document: dict[str, Any], kinds: tuple[str, ...]) -> dict[str, Any]:
    """The same; a third of them with nodes that undo others, or come last, or both."""
    if chance.random() < 0.65:
        return document
    likely = chance.choice((0, 0.5, 1))
    nodes = [
        {**node, "compensate": _closing(chance, kinds, f"{{{{ nodes.{node['id']}.output }}}}")}
        if chance.random() < likely
        else node
        for node in document["nodes"]
    ]
    told = chance.choice(("output", "state", "error"))
    reads = ["{{ execution }}", *(f"{{{{ nodes.{node['id']}.{told} }}}}" for node in nodes)]
    last = [
        {"id": f"last{i}", **_closing(chance, kinds, chance.choice(reads))}
        for i in range(chance.choice((0, 1, 1, 2, 3)))
    ]
    return {**document, "nodes": nodes, "finally": last}


def _closing(chance: Random, kinds: tuple[str, ...], reads: str) -> dict[str, Any]:
    node = _node(chance, "", chance.choice(("task", *kinds)))
    kept: dict[str, Any] = {name: node[name] for name in ("type", "retry", "timeout") if name in node}
    return {**kept, "with": {"read": reads, "outcome": "{{ execution.outcome }}"}}


def document(chance: Random, kinds: tuple[str, ...], largest: int, smallest: int = 1) -> dict[str, Any]:
    """A definition of `smallest` to `largest` nodes, few being likelier than many."""
    count = smallest + int(chance.random() ** 1.5 * (largest - smallest + 1))
    nodes = [_node(chance, f"n{i}", chance.choice(kinds)) for i in range(count)]
    edges = _edges(chance, nodes)
    _read_predecessors(chance, nodes, edges)
    made = {"ropewalk": 1, "name": "random", "nodes": nodes, "edges": edges, **_settings(chance, nodes)}
    # By a chance of its own: what was drawn before stays as it is.
    _ask_for_kinds(Random(repr(made)), made)
    _repeat(Random(f"rounds {made!r}"), made)
    return made


def _repeat(chance: Random, made: dict[str, Any]) -> None:
    """Let some nodes be repeated, and some that follow them ask how often they were, or if in vain."""
    for node in made["nodes"] if chance.random() < 0.4 else ():
        if "forEach" in node or chance.random() > 0.5:
            continue
        node["repeat"] = {
            **chance.choice(CONDITIONS),
            "delay": chance.choice((0, 0, 1, 30)),
            "max": chance.choice((2, 3, 5)),
        }
        if chance.random() < 0.6:
            node["with"] = {**node.get("with", {}), "round": "{{ index }}", "last": "{{ last }}"}
        for edge in made["edges"]:
            follower = made["nodes"][int(edge["to"][1:])]
            if edge["from"] == node["id"] and chance.random() < 0.5:
                follower["with"] = {**follower.get("with", {}), "rounds": f"{{{{ nodes.{node['id']}.rounds }}}}"}
            if edge["from"] == node["id"] and "on" not in edge and chance.random() < 0.3:
                edge["on"] = "exhausted"


def _ask_for_kinds(chance: Random, made: dict[str, Any]) -> None:
    """Let some error edges and retries ask which error it is, and some edges have another beside them."""
    for node in made["nodes"]:
        if "retry" in node and chance.random() < 0.4:
            node["retry"] |= chance.choice(KINDS_RETRIED)
    for edge in [each for each in made["edges"] if each.get("on") == "error"]:
        if chance.random() < 0.6:
            edge["when"] = chance.choice(KINDS_HANDLED)
            beside = {**edge, "when": chance.choice(KINDS_HANDLED)}
            if beside != edge and chance.random() < 0.5:
                made["edges"].append(beside)


def _node(chance: Random, name: str, kind: str) -> dict[str, Any]:
    node: dict[str, Any] = {"id": name, "type": kind}
    if chance.random() < 0.6:
        node["retry"] = {"maxAttempts": chance.randint(1, 3), "delay": chance.choice((0, 1, 5, 30)), "jitter": 0.5}
    if chance.random() < (0.4 if kind in WAITS else 0.1):
        node["timeout"] = chance.choice((5, 20, 60))
    if chance.random() < 0.25:
        node |= _map(chance)
    return node


def _map(chance: Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"forEach": chance.choice(ITEMS), "with": {"it": "{{ item }}"}}
    if chance.random() < 0.6:
        fields["concurrency"] = chance.randint(1, 3)
    if chance.random() < 0.6:
        fields["failureTolerance"] = chance.choice((1, 2, "50%"))
    if chance.random() < 0.4:
        fields["onItemFailure"] = "continue"
    if chance.random() < 0.4:
        fields["deadLetters"] = "always"
    return fields


def _edges(chance: Random, nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Edges from earlier to later nodes, each once."""
    edges: dict[tuple[int, int, str | None], None] = {}
    for target in range(1, len(nodes)):
        for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3))):
            source = chance.randrange(target)
            edges[source, target, _port(chance, nodes[source])] = None
    return [
        {"from": nodes[source]["id"], "to": nodes[target]["id"], **({"on": port} if port else {})}
        for source, target, port in edges
    ]


def _port(chance: Random, source: dict[str, Any]) -> str | None:
    if chance.random() < 0.15:
        return "error"
    is_map = "forEach" in source
    if source["type"] in WAITS and "timeout" in source and chance.random() < 0.3:
        return None if is_map else "expired"
    if source["type"] in ANSWERED and chance.random() < 0.4:
        return None if is_map else "arrived"
    ports = PORTS[source["type"]]
    return chance.choice(ports) if ports and not is_map and chance.random() < 0.8 else None


def _read_predecessors(chance: Random, nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> None:
    """Let some nodes read what a predecessor gave, or why it failed."""
    branching = dict.fromkeys(edge["from"] for edge in edges if edge.get("on", "error") != "error")
    for edge in edges:
        if chance.random() < 0.4:
            node = nodes[int(edge["to"][1:])]
            told = "error" if edge.get("on") == "error" else "output"
            node["with"] = {**node.get("with", {}), "read": f"{{{{ nodes.{edge['from']}.{told} }}}}"}
            if "forEach" in nodes[int(edge["from"][1:])]:
                _read_map(chance, node, edge["from"], may_be_map=edge["to"] not in branching)


def _read_map(chance: Random, node: dict[str, Any], source: str, *, may_be_map: bool) -> None:
    """Let a node read which items failed, or go through the items itself."""
    if chance.random() < 0.5:
        node["with"]["failed"] = f"{{{{ nodes.{source}.errors }}}}"
    if may_be_map and chance.random() < 0.5:
        node["forEach"] = f"{{{{ nodes.{source}.{chance.choice(('output', 'errors'))} }}}}"
        node["with"]["it"] = "{{ item }}"


def _settings(chance: Random, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if chance.random() < 0.2:
        settings["timeout"] = chance.choice((10, 30, 90))
    if chance.random() < 0.2:
        settings["onFailure"] = chance.choice(("stop", "cancel"))
    if chance.random() < 0.3:
        settings["maxParallel"] = chance.randint(1, 2)
    if chance.random() < 0.15:
        settings["output"] = BROKEN_OUTPUT if chance.random() < 0.2 else f"{{{{ nodes.{nodes[-1]['id']}.output }}}}"
    return settings
