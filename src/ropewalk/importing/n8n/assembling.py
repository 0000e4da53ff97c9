"""A workflow of n8n → a workflow of ours, and the report.

Each node is translated by the table, in an order in which those before it are known. What cannot be translated becomes
a node that fails and says so, beside a note with the source: a workflow that silently left a step out would be worse
than one that stops there. At the end the document is checked as any other; a node that does not pass becomes such a
stub too, so that what is given out always passes.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.definition import parse_definition
from ropewalk.core.definition.node_type import NodeTypeInfo
from ropewalk.core.errors import InvalidDefinition, Problem
from ropewalk.importing.n8n import control, data, files, reach, services, triggers  # noqa: F401 -- each enters its translations
from ropewalk.importing.n8n.before import Before
from ropewalk.importing.n8n.flows import Flow, Scope
from ropewalk.importing.n8n.graph import graph_of, is_trigger
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.reading import Connection, Node, Source, whole
from ropewalk.importing.n8n.report import Entry, Fidelity, Report
from ropewalk.importing.n8n.table import TABLE, Desk, Made, Out, note_text, shown

MOST_ROUNDS: Final = 20
LONGEST_ID: Final = 48
Types = Mapping[str, NodeTypeInfo]


class Imported(Struct):
    """The document, and what became of each node."""

    document: dict[str, Any]
    report: Report


class Assembling:
    """A workflow in the making."""

    def __init__(self, source: Source, types: Types) -> None:
        self._source = source
        self._types = types
        self._nodes = {node.name: node for node in source.nodes}
        self._graph = graph_of(source)
        self._ids = _ids(source.nodes)
        self._made: dict[str, Made] = {}
        self._entries: dict[str, Entry] = {}
        self._flows: dict[str, Flow] = {}
        self._hanging: dict[str, list[Connection]] = {}
        for each in source.connections:
            if each.kind != "main":
                self._hanging.setdefault(each.target, []).append(each)
        self._arriving: dict[str, list[Connection]] = {}
        for each in self._graph.connections:
            self._arriving.setdefault(each.target, []).append(each)
        self._notes = list(source.notes)

    def whole(self) -> Imported:
        for name in self._graph.order:
            self._translate(self._nodes[name])
        for name in self._graph.sub_nodes:
            self._leave_part(name)
        for name in self._graph.unreached:
            self._leave_out(name, Fidelity.EXACT, "no trigger leads to it, so that n8n never runs it: kept as a note")
        self._tell_of_loops()
        self._tell_of_settings()
        document = self._valid()
        entries = [self._entries[node.name] for node in self._source.nodes]
        return Imported(document, Report(entries, self._notes))

    # One node

    def _translate(self, node: Node) -> None:
        desk = self._desk(node, self._arriving.get(node.name, []))
        try:
            made = self._translated(node, desk)
        except Untranslatable as reason:
            made = self._stub(node, Fidelity.STUB, str(reason))
        else:
            reasons = [*desk.reasons, *desk.translator.notes]
            known = node.kind in TABLE or node.is_disabled
            fidelity = Fidelity.APPROXIMATED if reasons else Fidelity.EXACT
            if known:
                self._tell(node, fidelity, reasons, made)
        self._made[node.name] = made
        self._flows[node.name] = made.outs[0].flow if 0 in made.outs else Flow(f"nodes.{self._ids[node.name]}.output")

    def _desk(self, node: Node, arriving: list[Connection]) -> Desk:
        flows: dict[int, list[Flow]] = {}
        for each in arriving:
            flows.setdefault(each.input, []).append(self._out(each).flow)
        joined = {at: _joined(found) for at, found in flows.items()}
        flow = joined.get(0, Flow("input"))
        if node.runs_once and flow.is_many:
            flow = joined[0] = Flow(flow.at("0"))
        known = Before(node.name, self._arriving, self._flows)
        scope = Scope(
            json=f"item{flow.each}" if flow.is_many else flow.value,
            nodes=known,
            index="index" if flow.is_many else "0",
            lineage=flow.lineage,
            before=arriving[0].source if arriving else "",
        )
        parts: dict[str, list[Node]] = {}
        for each in self._hanging.get(node.name, ()):
            parts.setdefault(each.kind, []).append(self._nodes[each.source])
        desk = Desk(node, self._ids[node.name], {0: flow, **joined}, scope, self._types, parts)
        if any(len(found) > 1 for found in flows.values()):
            desk.differs("several ways lead into one input: it runs once, with what came by the first that was taken")
        return desk

    def _translated(self, node: Node, desk: Desk) -> Made:
        if node.is_disabled:
            made = {"id": desk.id, "type": "noop", "name": shown(node.name)}
            return Made([made], {at: desk.passed() for at in range(2)})
        translate = TABLE.get(node.kind)
        if translate is None and is_trigger(node):
            made_ = triggers.trigger(desk, [])
            reason = "what starts it has no equal here: start it by a call, a schedule, an event or a webhook"
            self._entries[node.name] = Entry(node.name, node.type, Fidelity.UNSUPPORTED, [desk.id], [reason])
            return made_
        if translate is None:
            return self._stub(node, Fidelity.UNSUPPORTED, "there is no node type like it here")
        return translate(desk)

    def _stub(self, node: Node, fidelity: Fidelity, reason: str) -> Made:
        """A node that fails and says why, and a note with what it was."""
        id_ = self._ids[node.name]
        message = note_text(f"not translated from n8n: {node.name[:200]}: {reason}")[:900]
        stub = {"id": id_, "type": "fail", "name": shown(node.name), "with": {"message": message}}
        text = {"text": note_text(_source_of(node))}
        note = {"id": f"{id_}_source", "type": "note", "name": shown(f"{node.name} in n8n"), "with": text}
        made = Made([stub, note], {}, (id_,))
        self._tell(node, fidelity, [reason], made)
        return made

    def _leave_out(self, name: str, fidelity: Fidelity, reason: str) -> None:
        node = self._nodes[name]
        id_ = self._ids[name]
        note = {"id": id_, "type": "note", "name": shown(name), "with": {"text": note_text(_source_of(node))}}
        made = self._made[name] = Made([note], {})
        self._tell(node, fidelity, [reason], made)

    def _leave_part(self, name: str) -> None:
        """What hangs on other nodes is a part of those, or of nothing."""
        parents = [each.target for each in self._source.connections if each.source == name]
        whole = (Fidelity.EXACT, Fidelity.APPROXIMATED)
        of = next((each for each in parents if each in self._entries and self._entries[each].fidelity in whole), None)
        if of is not None:
            self._leave_out(name, Fidelity.APPROXIMATED, f"it is a part of {of!r}, and kept as a note")
        else:
            reason = f"it is a part of {parents[0]!r}, which is not translated: kept as a note"
            self._leave_out(name, Fidelity.UNSUPPORTED, reason)

    def _tell(self, node: Node, fidelity: Fidelity, reasons: list[str], made: Made) -> None:
        ids = [each["id"] for each in made.nodes]
        self._entries[node.name] = Entry(node.name, node.type, fidelity, ids, reasons)

    def _tell_of_loops(self) -> None:
        for each in self._graph.cut:
            entry = self._entries[each.source]
            reason = f"its connection back to {each.target!r} is left out, since ways do not lead back here"
            if self._nodes[each.target].kind == "splitInBatches":
                reason = f"it is the end of the loop of {each.target!r}"
            entry.reasons.append(reason)
            if entry.fidelity is Fidelity.EXACT:
                entry.fidelity = Fidelity.APPROXIMATED

    def _tell_of_settings(self) -> None:
        """What is said of the whole: its error workflow, and several triggers, since a start begins the ways of all."""
        starts = [node for node in self._source.nodes if is_trigger(node) and node.kind != "stickyNote"]
        ways = {
            frozenset(each.target for each in self._graph.connections if each.source == node.name) for node in starts
        }
        if self._source.settings.get("errorWorkflow"):
            self._notes.append("its error workflow is left out: see `finally` of a workflow, and `on: error` edges")
        if len(ways) > 1:
            self._notes.append(f"it has {len(starts)} triggers: every start begins the ways of all of them")

    # Edges

    def _out(self, each: Connection) -> Out:
        """Where a connection begins, and what goes along it."""
        made, id_ = self._made[each.source], self._ids[each.source]
        if each.output in made.outs:
            return made.outs[each.output]
        if self._is_error(each):
            return Out(Flow(f"{{error: nodes.{id_}.error.message}}"), id_, "error")
        return made.outs.get(0, Out(Flow(f"nodes.{id_}.output"), id_))

    def _is_error(self, each: Connection) -> bool:
        made, node = self._made[each.source], self._nodes[each.source]
        regular = max(made.outs, default=0) + 1
        return node.on_error == "continueErrorOutput" and each.output >= regular and not node.is_disabled

    def _edges(self) -> list[dict[str, str]]:
        edges: dict[tuple[str, str, str | None], None] = {}
        for each in self._graph.connections:
            out, target = self._out(each), self._made[each.target]
            for entry in target.entries or (target.nodes[0]["id"],):
                edges[out.node, entry, out.port] = None
                if self._goes_on(each, out):
                    edges[out.node, entry, "error"] = None
        return [{"from": a, "to": b, **({} if on is None else {"on": on})} for a, b, on in edges]

    def _goes_on(self, each: Connection, out: Out) -> bool:
        node = self._nodes[each.source]
        if node.on_error != "continueRegularOutput" or node.is_disabled or out.port == "error":
            return False
        entry = self._entries[each.source]
        reason = "if it fails, what follows goes on with null in the place of the error"
        if reason not in entry.reasons:
            entry.reasons.append(reason)
            entry.fidelity = Fidelity.APPROXIMATED if entry.fidelity is Fidelity.EXACT else entry.fidelity
        return True

    # The document

    def _document(self) -> dict[str, Any]:
        order = [self._made[node.name] for node in self._source.nodes]
        document: dict[str, Any] = {"ropewalk": 1, "name": shown(self._source.name)}
        if limit := self._source.settings.get("executionTimeout"):
            seconds = whole(limit, -1, 10**7, -1)
            document |= {"timeout": f"{seconds}s"} if seconds > 0 else {}
        if found := [each for made in order for each in made.triggers]:
            document["triggers"] = [self._in_zone(each) for each in found[:100]]
        document["nodes"] = [node for made in order for node in made.nodes] or [_EMPTY]
        document["edges"] = self._edges()
        return document

    def _in_zone(self, trigger: dict[str, Any]) -> dict[str, Any]:
        zone = self._source.settings.get("timezone")
        is_zone = isinstance(zone, str) and re.fullmatch(r"[A-Za-z0-9_+/-]{1,64}", zone)
        return {**trigger, "zone": zone} if "cron" in trigger and is_zone else trigger

    def _valid(self) -> dict[str, Any]:
        """The document; what does not pass is taken out of it."""
        left_out: dict[str, None] = {}
        for _ in range(MOST_ROUNDS):
            document = {name: each for name, each in self._document().items() if name not in left_out}
            try:
                parse_definition(document, self._types)
            except InvalidDefinition as refusal:
                self._mend(document, refusal.problems, left_out)
            else:
                return document
        return {"ropewalk": 1, "name": "imported", "nodes": [_EMPTY]}

    def _mend(self, document: dict[str, Any], problems: tuple[Problem, ...], left_out: dict[str, None]) -> None:
        owners = {node["id"]: name for name, made in self._made.items() for node in made.nodes}
        for problem in problems:
            match problem.path:
                case ("nodes", int() as at, *_):
                    self._become_stub(owners[document["nodes"][at]["id"]], problem)
                case ("edges", int() as at, *_):
                    self._become_stub(owners[document["edges"][at]["from"]], problem)
                case ("nodes" | "ropewalk", *_) | ():
                    continue
                case (str() as top, *_):
                    left_out[top] = None
                    self._notes.append(f"{problem}: left out")

    def _become_stub(self, name: str, problem: Problem) -> None:
        node = self._nodes[name]
        if self._made[name].nodes[0]["type"] == "fail" and len(self._made[name].nodes) == 2:
            self._graph.connections = [
                each for each in self._graph.connections if name not in (each.source, each.target)
            ]
            return
        rest = ".".join(map(str, problem.path[2:]))
        self._made[name] = self._stub(node, Fidelity.STUB, f"{rest or 'it'}: {problem.message}"[:500])


_EMPTY: Final = {"id": "nothing", "type": "noop"}


def _ids(nodes: list[Node]) -> dict[str, str]:
    """A name for each node, made of its own."""
    taken: dict[str, None] = {"nothing": None}
    ids: dict[str, str] = {}
    for node in nodes:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", node.name).strip("_").lower()[:LONGEST_ID]
        base = plain if plain[:1].isalpha() else f"node_{plain}".rstrip("_")
        id_, count = base, 1
        while id_ in taken:
            count += 1
            id_ = f"{base}_{count}"
        # With what other nodes made of the same one may be called.
        taken |= dict.fromkeys([id_, f"{id_}_source", *(f"{id_}_{at}" for at in range(10))])
        ids[node.name] = id_
    return ids


def _joined(flows: list[Flow]) -> Flow:
    """What comes by several ways into one input."""
    if len(flows) == 1:
        return flows[0]
    if len({(flow.value, flow.is_many, flow.each) for flow in flows}) == 1:
        return replace(flows[0], guard="")
    if any(flow.is_many for flow in flows):
        return Flow(f"({' ?? '.join(flow.list_or_null() for flow in flows)} ?? [])", True, "", flows[0].value)
    return Flow(f"({' ?? '.join(flow.taken(flow.value) for flow in flows)})")


def _source_of(node: Node) -> str:
    """What a reader needs to write the node anew."""
    code = next((node.parameters[name] for name in _CODE if isinstance(node.parameters.get(name), str)), None)
    if code is not None:
        return f"{node.type}\n\n{code}"
    return f"{node.type}\n\n{json.dumps(node.parameters, indent=1, ensure_ascii=False, default=str)}"


_CODE: Final = ("jsCode", "pythonCode", "functionCode")
