"""Workflows written in Python: a builder of the very document that YAML files hold.

    workflow = Workflow("refund", vars={"shop": "https://shop.example"})
    order = workflow.node("order", "http.request", url=f"{workflow.vars.shop}/orders/{workflow.input.orderId}")
    pay = workflow.node("pay", charge, amount=order.output.body.total)
    order >> pay
    workflow.output = pay.output

The document is the only state, so a workflow read from a file can be built upon like one begun here. Whether it keeps
every rule is judged where it is saved, in one place for all languages; refused here is only what cannot be meant.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Any, Literal, Self, TypeAlias, TypeVar

from ropewalk.authoring import Reference, as_json
from ropewalk.core.canonical import JSON, shown
from ropewalk.core.errors import InvalidDefinition, Problem
from ropewalk.documents import read_document
from ropewalk.nodes.arguments import OPTIONS, check_call, defaults, hint, parameter, undoing
from ropewalk.nodes.base import NodeType
from ropewalk.nodes.function import FunctionNode

Value: TypeAlias = Any
"""A user's JSON, with references anywhere in it."""

Length: TypeAlias = str | float | timedelta

Targets = TypeVar("Targets", "Node", "list[Node]")


class Node:
    """A node of a workflow under construction. `a >> b` lets b follow a; `a >> [b, c] >> d` forks and joins."""

    __slots__ = ("id", "workflow")

    def __init__(self, workflow: "Workflow", node_id: str) -> None:
        self.workflow = workflow
        self.id = node_id

    @property
    def output(self) -> Reference:
        """What the node hands on; null if it failed or was skipped."""
        return self._field("output")

    @property
    def state(self) -> Reference:
        """How it ended: SUCCESS, FAILED or SKIPPED."""
        return self._field("state")

    @property
    def error(self) -> Reference:
        """Why it failed: type, message, attempts."""
        return self._field("error")

    @property
    def errors(self) -> Reference:
        """Which items of its map failed, and why."""
        return self._field("errors")

    def _field(self, name: str) -> Reference:
        return Reference(f"nodes.{self.id}.{name}")

    def on(self, port: str) -> "Port":
        """One way out of the node."""
        return Port(self, port)

    def compensate(self, node_type: str | NodeType, /, **given: Value) -> "Node":
        """Says what undoes this node: a type, its parameters, and its `retry`, `timeout`, `pool` and `credentials`."""
        self.workflow.undo(self.id, node_type, given)
        return self

    def on_error(self, when: str | None = None) -> "Port":
        """The way of a failure; with `when`, like `{{ error.status == 404 }}`, if that is true and none before is."""
        return Port(self, "error", when)

    def __rshift__(self, targets: Targets) -> Targets:
        return Port(self) >> targets

    def __rrshift__(self, sources: "Iterable[Node | Port]") -> "Node":
        for source in sources:
            _ = source >> self
        return self

    def __repr__(self) -> str:
        return f"<node {self.id} of {self.workflow.name}>"


class Port:
    """A way out of a node: `big.on("true") >> ask`."""

    __slots__ = ("name", "node", "when")

    def __init__(self, node: Node, name: str | None = None, when: str | None = None) -> None:
        self.node = node
        self.name = name
        self.when = when

    def __rshift__(self, targets: Targets) -> Targets:
        for target in [targets] if isinstance(targets, Node) else targets:
            self.node.workflow.edge(self.node, target, on=self.name, when=self.when)
        return targets

    def __repr__(self) -> str:
        return f"<port {self.name} of {self.node!r}>"


Sources: TypeAlias = Node | Port | Iterable[Node | Port]


class Workflow:
    """A workflow under construction."""

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        input: Mapping[str, JSON] | None = None,  # noqa: A002 -- the document's own word
        vars: Mapping[str, JSON] | None = None,  # noqa: A002 -- the document's own word
        output: Value = None,
        timeout: Length | None = None,
        on_failure: Literal["continue", "stop", "cancel"] | None = None,
        concurrency_key: str | Reference | None = None,
        max_parallel: int | None = None,
        triggers: Iterable[Mapping[str, Value]] | None = None,
    ) -> None:
        fields = {
            "ropewalk": 1,
            "name": name,
            "description": description,
            "input": input,
            "vars": vars,
            "timeout": timeout,
            "onFailure": on_failure,
            "concurrencyKey": concurrency_key,
            "maxParallel": max_parallel,
            "triggers": None if triggers is None else list(triggers),
            "output": output,
        }
        self._take(as_json(_given(**fields), ()))

    @classmethod
    def from_document(cls, document: JSON) -> Self:
        """The workflow a document describes, to be run or built upon."""
        workflow = cls.__new__(cls)
        workflow._take(as_json(document, ()))
        return workflow

    @classmethod
    def load(cls, path: str | FilePath) -> Self:
        """The workflow in a YAML or JSON file."""
        return cls.from_document(read_document(path).value)

    def _take(self, document: JSON) -> None:
        nodes, edges = _parts(document, "nodes", ("id",)), _parts(document, "edges", ("from", "to"))
        nodes = [*nodes, *_parts(document, "finally", ("id",))]
        self._document: dict[str, JSON] = document
        self._nodes = {node["id"]: Node(self, node["id"]) for node in nodes}
        self._arcs = {_arc(edge) for edge in edges}
        self._types: dict[str, NodeType] = {}
        self._revision = 0

    @property
    def revision(self) -> int:
        """Goes up with every change of the document, so that an engine knows a workflow again that has not changed."""
        return self._revision

    @property
    def name(self) -> str:
        """What the workflow is called in its workspace."""
        return str(self._document.get("name", ""))

    @property
    def input(self) -> Reference:
        """What an execution is started with."""
        return Reference("input")

    @property
    def vars(self) -> Reference:
        """The variables, with the values an execution has for them."""
        return Reference("vars")

    @property
    def output(self) -> Value:
        """The result as the document has it, a copy; None for the default, the outputs of the last nodes."""
        return as_json(self._document.get("output"), ("output",))

    @output.setter
    def output(self, value: Value) -> None:
        if value is None:
            self._document.pop("output", None)
        else:
            self._document["output"] = as_json(value, ("output",))
        self._revision += 1

    @property
    def node_types(self) -> list[NodeType]:
        """The types that nodes were given as objects, such as functions under `@node`; an engine must know them."""
        return list(self._types.values())

    def document(self) -> dict[str, JSON]:
        """The document, as a YAML file would hold it; a copy."""
        document: dict[str, JSON] = as_json(self._document, ())
        return document

    def __getitem__(self, node_id: str) -> Node:
        found = self._nodes.get(node_id)
        if found is None:
            raise InvalidDefinition(f"there is no node {shown(node_id)}{hint(node_id, self._nodes)}")
        return found

    def node(
        self,
        node_id: str,
        node_type: str | NodeType,
        /,
        *,
        name: str | None = None,
        for_each: Value = None,
        concurrency: int | None = None,
        failure_tolerance: int | str | None = None,
        on_item_failure: Literal["stop", "continue"] | None = None,
        dead_letters: Literal["beyondTolerance", "always"] | None = None,
        retry: Mapping[str, JSON] | None = None,
        repeat: Mapping[str, Value] | None = None,
        timeout: Length | None = None,
        cache: Mapping[str, JSON] | None = None,
        pool: str | None = None,
        credentials: str | Mapping[str, str] | None = None,
        ui: Mapping[str, JSON] | None = None,
        finally_: bool = False,
        after: Sources = (),
        on: str | None = None,
        with_: Mapping[str, Value] | None = None,
        **parameters: Value,
    ) -> Node:
        """Adds a node. What is given by other names goes to its type; `with_` takes what has the name of an option.

        One of `finally_` runs at the very end, with every outcome.
        """
        options = _given(
            name=name,
            for_each=for_each,
            concurrency=concurrency,
            failure_tolerance=failure_tolerance,
            on_item_failure=on_item_failure,
            dead_letters=dead_letters,
            retry=retry,
            repeat=repeat,
            timeout=timeout,
            cache=cache,
            pool=pool,
            credentials=credentials,
            ui=ui,
        )
        inputs = {**{parameter(key): value for key, value in parameters.items()}, **(with_ or {})}
        if isinstance(node_type, FunctionNode):
            check_call(node_type, inputs, options)
            options = {**defaults(node_type), **options}
        document: dict[str, Value] = {"id": node_id, "type": self._type_name(node_type)}
        document |= {OPTIONS[option]: value for option, value in options.items()}
        added = self._add(document | ({"with": inputs} if inputs else {}), "finally" if finally_ else "nodes")
        self._follow(added, after, on)
        return added

    def _type_name(self, node_type: str | NodeType) -> str:
        if isinstance(node_type, str):
            return node_type
        if not isinstance(node_type, NodeType):
            raise TypeError(f"{node_type!r} is no node type; put @node on the function, or name a type")
        if self._types.setdefault(node_type.name, node_type) is not node_type:
            raise InvalidDefinition(f"two node types are called {shown(node_type.name)}; give one another name")
        return node_type.name

    def _add(self, document: dict[str, Value], field: str) -> Node:
        node_id = document["id"]
        nodes: list[JSON] = self._document.setdefault(field, [])
        if node_id in self._nodes:
            raise InvalidDefinition([Problem((field, len(nodes), "id"), f"duplicate id {shown(node_id)}")])
        nodes.append(as_json(document, (field, len(nodes))))
        added = self._nodes[node_id] = Node(self, node_id)
        self._revision += 1
        return added

    def undo(self, node_id: str, node_type: str | NodeType, given: Mapping[str, Value]) -> None:
        """Let a node be undone by one of this type; `Node.compensate` says it."""
        document = {"type": self._type_name(node_type), **undoing(node_type, given)}
        place = [node["id"] for node in self._document["nodes"]].index(node_id)
        self._document["nodes"][place]["compensate"] = as_json(document, ("nodes", place, "compensate"))
        self._revision += 1

    def _follow(self, node: Node, after: Sources, on: str | None) -> None:
        sources = [after] if isinstance(after, Node | Port) else list(after)
        if on is not None and not sources:
            raise TypeError("on names a port of the nodes in after; say which")
        for source in sources:
            if isinstance(source, Node):
                self.edge(source, node, on=on)
            else:
                _ = source >> node

    def edge(self, source: Node | str, target: Node | str, *, on: str | None = None, when: str | None = None) -> None:
        """Lets one node follow another; with `on`, only if that port is taken, and on errors only `when` it is true."""
        ends = {"from": self._own(source).id, "to": self._own(target).id}
        edge = ends | _given(on=on, when=when)
        if _arc(edge) in self._arcs:
            port = "" if on is None else f" on {shown(on)}"
            raise InvalidDefinition(f"there is an edge from {ends['from']} to {ends['to']}{port} already")
        self._arcs.add(_arc(edge))
        self._document.setdefault("edges", []).append(edge)
        self._revision += 1

    def _own(self, node: Node | str) -> Node:
        if isinstance(node, str):
            return self[node]
        if node.workflow is not self:
            raise InvalidDefinition(f"{node!r} belongs to another workflow")
        return node

    def __repr__(self) -> str:
        return f"<workflow {self.name} of {len(self._nodes)} nodes>"


def _given(**fields: Value) -> dict[str, Value]:
    return {field: value for field, value in fields.items() if value is not None}


def _parts(document: JSON, field: str, names: tuple[str, ...]) -> list[dict[str, JSON]]:
    """The nodes or edges of a document that comes from elsewhere, as far as a builder needs them in order."""
    if not isinstance(document, dict):
        raise InvalidDefinition("must be an object")
    parts = document.get(field, [])
    if not isinstance(parts, list):
        raise InvalidDefinition([Problem((field,), "must be a list")])
    problems = [
        Problem((field, place), f"must be an object with {' and '.join(names)}")
        for place, part in enumerate(parts)
        if not isinstance(part, dict) or not all(isinstance(part.get(name), str) for name in names)
    ]
    if problems:
        raise InvalidDefinition(problems)
    return parts


def _arc(edge: Mapping[str, JSON]) -> tuple[str, str, str | None, str | None]:
    return edge["from"], edge["to"], edge.get("on"), edge.get("when")
