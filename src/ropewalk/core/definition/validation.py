"""Everything that can be wrong with a workflow document, found in one linear pass, each with its path."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ropewalk.core.canonical import JSON, Path, json_problems, shown, step
from ropewalk.core.closing_nodes import Placed, closing_nodes
from ropewalk.core.definition.ancestry import Reference, not_ancestors
from ropewalk.core.definition.authoring import Expressions, certainty_of
from ropewalk.core.definition.fields import EDGE, FINALLY, NODE, TOP
from ropewalk.core.definition.literals import literal_problems
from ropewalk.core.definition.node_type import NodeTypeInfo, NodeTypes
from ropewalk.core.definition.ports import Ports, ports_of
from ropewalk.core.definition.report import Report
from ropewalk.core.definition.slots import slot_problems
from ropewalk.core.definition.topology import ERROR_PORT, Edge, Topology, port_of
from ropewalk.core.definition.triggers import check_triggers
from ropewalk.core.errors import Problem
from ropewalk.core.expression import has_expression
from ropewalk.core.schema import check_schema, validate

LONGEST_CYCLE_SHOWN = 20
MOST_WAYS = 32
"""How many different `when` the edges of one node may have: each may be evaluated when the node fails."""


class Limits(Struct, frozen=True):
    """How large a definition may be, and how many of its problems are told."""

    nodes: int = 10_000
    edges: int = 50_000
    problems: int = 100


DEFAULT_LIMITS = Limits()


def check_document(
    document: JSON, types: NodeTypes, limits: Limits, missing: Mapping[str, str]
) -> tuple[Report, Topology]:
    """All problems of a document, and its graph as far as it could be read."""
    report = Report(limits.problems)
    TOP.check(document, (), report)
    nodes, edges = _lists(document)
    closing = closing_nodes(document)
    if _is_too_large(len(nodes) + len(closing), len(edges), limits, report):
        return report, Topology(0, ())
    checks = _Checks(document, nodes, edges, closing, types, missing, report)
    return report, checks.run()


def _lists(document: JSON) -> tuple[list[JSON], list[JSON]]:
    """The nodes and edges of a document, none where there should be a list and is not."""
    found = [document.get(name) if isinstance(document, dict) else None for name in ("nodes", "edges")]
    nodes, edges = (value if isinstance(value, list) else [] for value in found)
    return nodes, edges


def _is_too_large(nodes: int, edges: int, limits: Limits, report: Report) -> bool:
    before = report.count
    for name, count, most in (("nodes", nodes, limits.nodes), ("edges", edges, limits.edges)):
        if count > most:
            report.add((name,), f"has {count} {name}, at most {most} are allowed")
    return report.count > before


class _Checks:
    """One document under examination."""

    __slots__ = (
        "document", "edges", "expressions", "index", "missing", "nodes", "ordinary", "ports", "report", "types", "ways",
    )  # fmt: skip

    def __init__(self, document: JSON, nodes: list[JSON], edges: list[JSON], closing: list[Placed], types: NodeTypes,
                 missing: Mapping[str, str], report: Report) -> None:  # fmt: skip
        self.document = document
        self.nodes = [*nodes, *(node for _, node in closing)]
        self.ordinary = len(nodes)
        self.edges = edges
        self.types = types
        self.missing = missing
        self.report = report
        # Edges know the nodes of the graph alone; expressions also those of `finally`.
        self.index = _index(nodes, report)
        places = {self.ordinary + i: path for i, (path, _) in enumerate(closing)}
        self.expressions = Expressions(_with_last(self.index, self.nodes, places, report), report, places)
        # Of the nodes whose edges or parameters name one, each looked up once, however many edges it has.
        self.ports: dict[int, Ports | None] = {}
        # Of the nodes whose error edges ask which failure it is, every `when`.
        self.ways: dict[int, dict[str, None]] = {}

    def run(self) -> Topology:
        """Reports every problem and gives the graph of the edges that make sense."""
        for i, node in enumerate(self.nodes[: self.ordinary]):
            NODE.check(node, ("nodes", i), self.report)
            if isinstance(node, dict):
                self._check_work(i, node)
        self._check_closing()
        edge_problems = self.report.count
        topology = Topology(len(self.nodes), self._arcs())
        are_edges_good = self.report.count == edge_problems
        self._check_cycle(topology)
        if isinstance(self.document, dict):
            self._check_whole(self.document)
        if are_edges_good and topology.is_acyclic:
            self._check_ancestry(topology)
        return topology

    def _check_closing(self) -> None:
        last = self.document.get("finally") if isinstance(self.document, dict) else None
        for i, node in enumerate(last if isinstance(last, list) else ()):
            FINALLY.check(node, ("finally", i), self.report)
        for i, node in enumerate(self.nodes[self.ordinary :], self.ordinary):
            self._check_work(i, node)

    def _check_work(self, i: int, node: dict[str, Any]) -> None:
        node_type = self._type_of(node)
        if node_type is None and isinstance(node.get("type"), str):
            self.report.add((*self.expressions.path_of(i), "type"), self._why_unknown(node["type"]))
        self._check_parameters(i, node, node_type)
        if "forEach" in node and i < self.ordinary:
            self.expressions.check_for_each(i, node["forEach"])
        if node_type is not None and "credentials" in node:
            self.report.extend(
                slot_problems(node_type, node["credentials"], (*self.expressions.path_of(i), "credentials"))
            )
        if isinstance(repeat := node.get("repeat"), dict) and i < self.ordinary:
            self._check_repeat(i, node, repeat)
        if isinstance(retry := node.get("retry"), dict) and "when" in retry:
            self.expressions.check_when(
                i, (*self.expressions.path_of(i), "retry", "when"), retry["when"], is_retry=True
            )

    def _check_repeat(self, i: int, node: dict[str, Any], repeat: dict[str, Any]) -> None:
        path: Path = ("nodes", i, "repeat")
        asked = [word for word in ("until", "while") if word in repeat]
        if len(asked) != 1:
            self.report.add(path, "needs exactly one of the fields until, while")
        for word in asked:
            self.expressions.check_repeat(i, word, repeat[word])
        for other in ("forEach", "cache"):
            if other in node:
                self.report.add(path, f"cannot be together with {other} on one node")

    def _why_unknown(self, name: str) -> str:
        why = self.missing.get(name)
        if why is None:
            return f"unknown node type {shown(name)}"
        return f"the node type {shown(name)} cannot be loaded: {why}"

    def _type_of(self, node: JSON) -> NodeTypeInfo | None:
        name = node.get("type") if isinstance(node, dict) else None
        return self.types.get(name) if isinstance(name, str) else None

    def _check_parameters(self, i: int, node: dict[str, Any], node_type: NodeTypeInfo | None) -> None:
        parameters = node.get("with", {})
        if not isinstance(parameters, dict):
            return
        path: Path = (*self.expressions.path_of(i), "with")
        if problems := json_problems(parameters, path):
            self.report.extend(problems)
            return
        if node_type is not None:
            problems = validate(node_type.parameters, parameters, path, certainty_of)
            problems = problems or literal_problems(node_type.literal, parameters, path)
            problems = problems or _broken_rules(node_type, parameters, path)
            self.report.extend(problems)
            self._check_ports(i, node_type, problems)
            known = [problem.path for problem in problems]
            for name in node_type.expressions:
                if isinstance(source := parameters.get(name), str) and (*path, name) not in known:
                    self.expressions.check_source(i, name, source, is_map="forEach" in node)
        if parameters:
            is_map, is_repeated = "forEach" in node, "repeat" in node
            self.expressions.check_parameters(i, parameters, is_map, is_repeated=is_repeated)

    def _check_ports(self, i: int, node_type: NodeTypeInfo, told: list[Problem]) -> None:
        """The ports that parameters name; those of every other type were looked at with the type."""
        ports = self._ports_of(i) if node_type.ports is None else None
        # A type that knows a rule of ports itself has told of it.
        if ports is not None and ports.wrong is not None and all(each.message != ports.wrong for each in told):
            self.report.add((*self.expressions.path_of(i), "with"), ports.wrong)

    def _arcs(self) -> list[Edge]:
        """The edges between known nodes, each once."""
        arcs: dict[Edge, int] = {}
        for i, edge in enumerate(self.edges):
            arc = self._plain_arc(edge) or self._arc(i, edge)
            if arc is not None:
                first = arcs.setdefault(arc, i)
                if first != i:
                    self.report.add(("edges", i), f"is the same as edges[{first}]")
        return list(arcs)

    def _plain_arc(self, edge: JSON) -> Edge | None:
        """An edge with nothing but two known names, as nearly all are: too many to walk the field table for each."""
        try:
            return (self.index[edge["from"]], self.index[edge["to"]], None) if len(edge) == 2 else None
        except (KeyError, TypeError):
            return None

    def _arc(self, i: int, edge: JSON) -> Edge | None:
        EDGE.check(edge, ("edges", i), self.report)
        if not isinstance(edge, dict):
            return None
        source, target = self._end(i, edge, "from"), self._end(i, edge, "to")
        if source is None or target is None:
            return None
        port = self._port(i, edge, source) if "on" in edge else None
        return (source, target, self._way(i, edge, source, port) if "when" in edge else port)

    def _way(self, i: int, edge: dict[str, Any], source: int, port: str | None) -> str | None:
        """The port of an error edge that asks which failure it is."""
        path: Path = ("edges", i, "when")
        if port is not None and port != ERROR_PORT:
            self.report.add(path, f"only an edge with on: {ERROR_PORT} has it")
        if not isinstance(edge["when"], str):
            return port
        self.expressions.check_when(source, path, edge["when"])
        known = self.ways.setdefault(source, {})
        known[edge["when"]] = None
        if len(known) == MOST_WAYS + 1:
            self.report.add(path, f"the edges of a node may have {MOST_WAYS} different `when` at most")
        return port_of(edge)

    def _end(self, i: int, edge: dict[str, Any], side: str) -> int | None:
        name = edge.get(side)
        if not isinstance(name, str):
            return None
        if name not in self.index:
            is_last = name in self.expressions.index
            why = (
                f"{shown(name)} is a node of finally, which has no edges"
                if is_last
                else f"there is no node {shown(name)}"
            )
            self.report.add(("edges", i, side), why)
        return self.index.get(name)

    def _port(self, i: int, edge: dict[str, Any], source: int) -> str | None:
        port = edge["on"]
        if not isinstance(port, str):
            return None
        ports = self._ports_of(source)
        if ports is not None and (refusal := ports.refusal(port)):
            self.report.add(("edges", i, "on"), refusal)
        return port

    def _ports_of(self, i: int) -> Ports | None:
        if i not in self.ports:
            node_type = self._type_of(self.nodes[i])
            self.ports[i] = None if node_type is None else ports_of(self.nodes[i], node_type)
        return self.ports[i]

    def _check_cycle(self, topology: Topology) -> None:
        if cycle := topology.cycle():
            names = [step(self.nodes[node]["id"]) for node in cycle[:LONGEST_CYCLE_SHOWN]]
            middle = [f"… ({len(cycle)} nodes)"] if len(cycle) > LONGEST_CYCLE_SHOWN else []
            closing = self._edge_between(cycle[-1], cycle[0])
            self.report.add(("edges", closing), f"makes a cycle: {' → '.join([*names, *middle, names[0]])}")

    def _edge_between(self, source: int, target: int) -> int:
        ends = (self.nodes[source]["id"], self.nodes[target]["id"])
        return next(i for i, edge in enumerate(self.edges) if _ends(edge) == ends)

    def _check_whole(self, document: dict[str, Any]) -> None:
        schema = document.get("input")
        if isinstance(schema, dict):
            self.report.extend(check_schema(schema, ("input",)))
        self.expressions.check_document(document)
        check_triggers(document.get("triggers"), self.report)

    def _check_ancestry(self, topology: Topology) -> None:
        uses = self.expressions.uses
        asked = {reference: self._as_asked(reference) for reference in uses}
        wrong: dict[Reference, None] = dict.fromkeys(not_ancestors(topology, [each for each in asked.values() if each]))
        for reference, use in uses.items():
            if asked[reference] in wrong:
                named = step(self.nodes[reference[0]]["id"])
                path = use.path if self.report.is_full else self.expressions.place_of(use)
                self.report.add(path, f"refers to {named}, which does not come before this node")

    def _as_asked(self, reference: Reference) -> Reference | None:
        """Which node must be an ancestor of which, so that this one may refer to that one; None if it always may.

        A node of `finally` sees all that ran before it. What undoes a node sees that node, and what the node sees.
        """
        named, asker = reference
        place = self.expressions.closing.get(asker)
        if place is None:
            return reference
        if place[0] == "finally":
            return reference if named >= asker else None
        undone = int(place[1])
        return None if named == undone else (named, undone)


def _with_last(index: dict[str, int], nodes: list[JSON], places: Mapping[int, Path], report: Report) -> dict[str, int]:
    """Where each id is, those of `finally` included; what undoes a node has a name that no expression can say."""
    last = {i: path for i, path in places.items() if path[0] == "finally"}
    if not last:
        return index
    known = dict(index)
    for i, path in last.items():
        name = nodes[i].get("id")
        if isinstance(name, str) and known.setdefault(name, i) != i:
            report.add((*path, "id"), f"duplicate id {shown(name)}")
    return known


def _index(nodes: list[JSON], report: Report) -> dict[str, int]:
    """Where each id is; the first of several nodes keeps it."""
    index: dict[str, int] = {}
    for i, node in enumerate(nodes):
        name = node.get("id") if isinstance(node, dict) else None
        if isinstance(name, str):
            first = index.setdefault(name, i)
            if first != i:
                report.add(("nodes", i, "id"), f"duplicate id {shown(name)}, first used by nodes[{first}]")
    return index


def _ends(edge: JSON) -> tuple[JSON, JSON] | None:
    return (edge.get("from"), edge.get("to")) if isinstance(edge, dict) else None


def _broken_rules(node_type: NodeTypeInfo, parameters: JSON, path: Path) -> list[Problem]:
    """What a type has to say about parameters that no run will change."""
    found: list[Problem] = []
    if node_type.problems_in is not None:
        found += node_type.problems_in({name: each for name, each in parameters.items() if not _holds_expression(each)})
    if node_type.problems_with is not None and not _holds_expression(parameters):
        found += node_type.problems_with(parameters)
    return [Problem((*path, *each.path), each.message) for each in found]


def _holds_expression(value: JSON) -> bool:
    match value:
        case str():
            return has_expression(value)
        case dict():
            return any(map(_holds_expression, value.values()))
        case list():
            return any(map(_holds_expression, value))
        case _:
            return False
