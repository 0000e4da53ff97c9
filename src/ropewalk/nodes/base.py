"""What a node type is, what it is given, and where the types are found by name.

A node type takes parameters (its inputs, resolved and validated) and a context, and answers with an output, or with a
wait that the core keeps. It says that it failed with `NodeFailure`; anything else it raises is classified by
`failure_of`. `run` is awaited on the loop always: a type whose code blocks hands it to `Facilities.carry_out`, and
`placement` tells where that is.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from ropewalk.core.definition.node_type import ARRIVED_PORT, EXPIRED_PORT, About, NodeTypeInfo
from ropewalk.core.errors import Problem
from ropewalk.core.reach import Reached
from ropewalk.core.schema import check_schema
from ropewalk.core.waits import Wait
from ropewalk.nodes.builtin import BUILTIN
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.describing import checked_about, titled
from ropewalk.nodes.facilities import Facilities
from ropewalk.nodes.failure import LONGEST_MESSAGE, NodeFailure, failure_of, shortened
from ropewalk.nodes.own_retry import own_retry
from ropewalk.nodes.values import Output, check_output
from ropewalk.nodes.work import Placement

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pydantic import BaseModel

    from ropewalk.nodes.inputs import Inputs

__all__ = [
    "About",
    "Facilities",
    "Inputs",
    "NodeContext",
    "NodeFailure",
    "NodeType",
    "NodeTypeProblem",
    "Output",
    "Placement",
    "Registry",
    "Wait",
    "check_output",
    "failure_of",
]

ENTRY_POINTS = "ropewalk.nodes"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")
_log = logging.getLogger("ropewalk.node")


class NodeType(ABC):
    """One kind of node. `Parameters` is None when it takes none, `ports` when they depend on the parameters."""

    name: str
    summary: str = ""
    about: About = About()
    Parameters: "type[BaseModel] | None" = None
    ports: tuple[str, ...] | None = ()
    # Whether an output takes exactly one of the ports, and never several or none.
    takes_one_port: bool = False
    is_wait: bool = False
    # Parameters that are expressions without braces, evaluated later in the node's own scope: a wait's filter.
    expressions: tuple[str, ...] = ()
    # Whether the parameters have rules that no schema tells: they are then tried out when a workflow is saved.
    has_rules: bool = False
    # Parameters that hold no expression, like `query` or `statements.*.query`: see `core/definition/literals.py`.
    literal: tuple[str, ...] = ()
    # Which parameters name something beyond the workflow: an actor with a share alone may not have them name anything.
    reaches: Mapping[str, Reached] = MappingProxyType({})
    # The types of credentials that its nodes take, by slot; "" is the slot of a node that names one credential.
    credentials: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    placement: Placement = Placement.LOOP
    # Whether its run waits for nothing and reaches nothing: what it does with large values is done beside the loop.
    only_shapes: bool = False
    # What nodes of this type are given unless they say otherwise: `retry` wherever one is used.
    defaults: Mapping[str, Any] = MappingProxyType({})

    def accept(self, inputs: Mapping[str, Any] | None) -> Any:
        """The parameters made of resolved inputs; a permanent failure names every field that does not fit."""
        if self.Parameters is None and not inputs:
            return None
        # Here, since what takes no parameters does without the library that checks them.
        from ropewalk.nodes.inputs import accepted

        return accepted(self.Parameters, inputs or {})

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its parameters; ValueError if they cannot be described."""
        if self.Parameters is None:
            return {"additionalProperties": False, "properties": {}, "type": "object"}
        from pydantic.errors import PydanticUserError  # here, since what takes no parameters does without the library

        try:
            schema: dict[str, Any] = titled(self.Parameters.model_json_schema())
        except PydanticUserError as error:
            raise ValueError(f"{self.name}: its parameters cannot be described: {error}") from error
        return schema

    def ports_with(self, written: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The ports of a node with these parameters; None where only its run will show them.

        Asked where `ports` is None, of parameters as written: they may not fit, and any text may be an expression.
        What it raises is told to the author as a problem of the node.
        """
        return None

    def problems_in(self, constant: Mapping[str, Any]) -> Sequence[Problem]:
        """What is wrong with those parameters that hold no expression; asked when a workflow is saved."""
        return ()

    def wrong_ports(self, parameters: Mapping[str, Any], taken: Sequence[str]) -> str | None:
        """What is wrong with an output of a node with these parameters that takes these ports, if anything is."""
        own = self.ports if self.ports is not None else self.ports_with(parameters)
        if own is None:
            return None
        if self.is_wait:
            own = (*own, EXPIRED_PORT) if own else (ARRIVED_PORT, EXPIRED_PORT)
        if unknown := next((port for port in taken if port not in own), None):
            known = f"it has {', '.join(own)}" if own else "it has none"
            return f"{self.name} has no port {unknown!r}; {known}"
        if self.takes_one_port and len(taken) != 1:
            return f"{self.name} takes exactly one of its ports: {', '.join(own)}"
        return None

    def waits(self, parameters: Any) -> bool:
        """Whether it waits for something all the same with these parameters, a file; asked if it only shapes values."""
        return False

    def takes_long(self, parameters: Any) -> bool:
        """Whether what it does with small inputs is done beside the loop too; asked if it only shapes values."""
        return False

    def target(self, parameters: Any) -> str | None:
        """What a circuit breaker watches: the type and the endpoint; None for work that calls no endpoint."""
        return None

    def prepare(self, facilities: Facilities) -> None:  # noqa: B027 -- most types have nothing to load
        """Loads what only its first run would load; asked before a run that is to begin at a certain moment."""

    @abstractmethod
    async def run(self, parameters: Any, context: NodeContext) -> Output | Wait:
        """Does the node's work once."""


def __getattr__(name: str) -> object:
    """`Inputs`, which node types derive their parameters from, comes with a library that is slow to import."""
    if name != "Inputs":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("ropewalk.nodes.inputs").Inputs


class NodeTypeProblem(Struct, frozen=True):
    """A node type that could not be loaded: the name and place its package gives it, and why."""

    name: str
    place: str
    reason: str


class _Infos(Mapping[str, NodeTypeInfo]):
    """Each type is described when it is first asked for."""

    def __init__(self, names: Mapping[str, object], info: Callable[[str], NodeTypeInfo]) -> None:
        self._names = names
        self._info = info

    def __getitem__(self, name: str) -> NodeTypeInfo:
        return self._info(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Registry:
    """Node types by name."""

    def __init__(self, types: Iterable[type[NodeType] | NodeType] = ()) -> None:
        self._types: dict[str, NodeType] = {}
        self._infos: dict[str, NodeTypeInfo] = {}
        # `module:class` of types that are imported when they are first asked for.
        self._places: Mapping[str, str] = {}
        self._problems: list[NodeTypeProblem] = []
        self._missed: dict[str, None] = {}
        # Gives the type that carries out a run; a test puts stubs in its place.
        self.for_runs: Callable[[str], NodeType | None] = self.get
        for node_type in types:
            self.register(node_type)

    @classmethod
    def builtin(cls) -> Self:
        """The types that come with Ropewalk."""
        found = cls()
        found._places = BUILTIN
        return found

    def register(self, node_type: type[NodeType] | NodeType) -> None:
        """Adds a type; ValueError if its name is taken or its description is no good."""
        instance = node_type() if isinstance(node_type, type) else node_type
        if not isinstance(instance, NodeType):
            raise ValueError(f"{instance!r} is no node type")
        if not _NAME.fullmatch(instance.name):
            raise ValueError(f"{instance.name!r} is no name for a node type; write it like send_invoice or crm.update")
        if instance.name in self.infos():
            raise ValueError(f"there is a node type {instance.name!r} already")
        self._infos[instance.name] = info_of(instance)
        self._types[instance.name] = instance

    def get(self, name: str) -> NodeType | None:
        """The type of this name, if there is one here."""
        known = self._types.get(name)
        return known if known is not None else self._imported(name)

    def _imported(self, name: str) -> NodeType | None:
        if name not in self._places:
            return None
        module, _, kind = self._places[name].partition(":")
        found: NodeType = getattr(import_module(module), kind)()
        self._types[name] = found
        return found

    def miss(self, name: str) -> None:
        """Says that a run waits for a type that is not known here; once, for any number of runs."""
        if name not in self._missed:
            self._missed[name] = None
            remedy = "name it with --nodes, or in the nodes of ropewalk.open"
            _log.warning(
                "the node type %r is not known here; its runs wait for a worker that knows it: %s", name, remedy
            )

    def infos(self) -> Mapping[str, NodeTypeInfo]:
        """What a definition is checked against."""
        return _Infos({**self._places, **self._types}, self._info)

    def _info(self, name: str) -> NodeTypeInfo:
        if name not in self._infos and (known := self._types.get(name) or self._imported(name)) is not None:
            self._infos[name] = info_of(known)
        return self._infos[name]

    def import_all(self) -> None:
        """Imports every type: a process that lives long takes none from a release that was installed meanwhile."""
        for name in self._places:
            self._info(name)

    def load_entry_points(self, found: "Iterable[EntryPoint] | None" = None) -> tuple[NodeTypeProblem, ...]:
        """Adds the types of installed packages; one that cannot be loaded is reported and leaves the others alone."""
        from importlib.metadata import entry_points  # here, since nothing else in the module needs it

        points = entry_points(group=ENTRY_POINTS) if found is None else found
        reports = [self._load(point) for point in sorted(points, key=lambda point: (point.name, point.value))]
        problems = tuple(report for report in reports if report is not None)
        self._problems += problems
        return problems

    def _load(self, point: "EntryPoint") -> NodeTypeProblem | None:
        try:
            found = point.load()
            # A file may declare several types.
            for each in found if isinstance(found, list | tuple) else [found]:
                self.register(each)
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- importing a package may raise anything
            reason = shortened(f"{type(error).__name__}: {error}", LONGEST_MESSAGE)
            return NodeTypeProblem(point.name, point.value, reason)
        return None

    @property
    def missing(self) -> dict[str, str]:
        """The types of installed packages that could not be loaded, as these call them, and why."""
        return {each.name: each.reason for each in self._problems}

    def tell_of_missing(self) -> None:
        """Logs what could not be loaded; for a process that executes, since the others do without node types."""
        for each in self._problems:
            _log.warning("the node type %s (%s) cannot be loaded: %s", each.name, each.place, each.reason)


def info_of(node_type: NodeType) -> NodeTypeInfo:
    """The type as definitions see it; ValueError if its ports or parameters cannot be described."""
    if "error" in (node_type.ports or ()):
        raise ValueError(f"{node_type.name}: a port cannot be named 'error', which is the edge of failures")
    schema = node_type.schema()
    if problems := check_schema(schema):
        raise ValueError(f"{node_type.name}: its parameters cannot be described: {problems[0]}")
    return NodeTypeInfo(
        name=node_type.name,
        ports=node_type.ports,
        parameters=schema,
        is_wait=node_type.is_wait,
        expressions=node_type.expressions,
        summary=node_type.summary,
        ports_with=node_type.ports_with,
        problems_with=_tried_out(node_type.Parameters) if node_type.has_rules else None,
        problems_in=node_type.problems_in,
        literal=node_type.literal,
        reaches=node_type.reaches,
        credentials=node_type.credentials,
        retry=own_retry(node_type.name, node_type.defaults),
        about=checked_about(node_type.name, node_type.about),
    )


def _tried_out(kind: "type[BaseModel] | None") -> "Callable[[Mapping[str, Any]], Sequence[Problem]]":
    from ropewalk.nodes.inputs import refused  # here, as in `accept`

    return partial(refused, kind)
