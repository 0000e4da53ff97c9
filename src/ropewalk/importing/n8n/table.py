"""The table of translations: a function for each type of n8n, and what such a function is given and makes.

A new type is one function under `@translates("its name")`: it makes nodes with `desk.node(…)` and says what goes out.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ropewalk.importing.n8n.expressions import Translator
from ropewalk.importing.n8n.flows import Flow, Scope, braces, escaped, quoted
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.reading import Node

PACKAGES: Final = ("n8n-nodes-base.", "@n8n/n8n-nodes-langchain.")
ALONE: Final = {"maxAttempts": 1}
"""n8n tries once, unless a node says otherwise."""


class Out(Struct, frozen=True):
    """What leaves by one output: the items, and the node and port that the edges begin at."""

    flow: Flow
    node: str
    port: str | None = None


class Made(Struct):
    """The nodes that take the place of one of n8n; edges lead to the first, or to all of `entries`."""

    nodes: list[dict[str, Any]]
    outs: dict[int, Out]
    entries: tuple[str, ...] = ()
    triggers: list[dict[str, Any]] = field(default_factory=list)


class Desk:
    """What a translation has at hand for one node."""

    def __init__(
        self, node: Node, id_: str, flows: Mapping[int, Flow], scope: Scope, types: Mapping[str, Any],
        sub_nodes: Mapping[str, list[Node]],
    ) -> None:  # fmt: skip
        self.source = node
        self.id = id_
        self.flows = flows
        self.types = types
        self.sub_nodes = sub_nodes
        self.translator = Translator(scope)
        self.reasons: dict[str, None] = {}

    @property
    def flow(self) -> Flow:
        """What comes in by the first input."""
        return self.flows.get(0, Flow("null"))

    @property
    def parameters(self) -> dict[str, Any]:
        return self.source.parameters

    def differs(self, reason: str) -> None:
        """Says what is different from the original."""
        self.reasons[reason] = None

    def get(self, *path: str, default: Any = None) -> Any:
        """A parameter as it is written."""
        found: Any = self.parameters
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return default if found is None else found

    def value(self, *path: str, default: Any = None) -> Any:
        """A parameter as a value of our document."""
        return self.translator.value(self.get(*path, default=default))

    def text(self, *path: str, default: str = "") -> str:
        """A parameter that is a text."""
        given = self.get(*path, default=default)
        return str(self.translator.value(given if isinstance(given, str) else str(given)))

    def rows(self, *path: str) -> list[dict[str, Any]]:
        """A parameter that is a list of objects."""
        found = self.get(*path, default=[])
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def needs(self, type_: str) -> None:
        """Refuses a translation into a type that is not there."""
        if type_ not in self.types:
            raise Untranslatable(f"it would become {type_}, which is not among the node types here")

    def node(self, type_: str, with_: dict[str, Any], *, id_: str | None = None, per_item: bool = True,
             reaches: bool = False) -> dict[str, Any]:  # fmt: skip
        """A node; one that works on each item is a map if there may be many."""
        self.needs(type_)
        made: dict[str, Any] = {"id": id_ or self.id, "type": type_, "name": shown(self.source.name)}
        if per_item and self.flow.is_many:
            made["forEach"] = braces(self.flow.value)
        if with_:
            made["with"] = with_
        if self.source.retry is not None or reaches:
            made["retry"] = dict(self.source.retry or ALONE)
        if (named := list(self.source.credentials.items())) and self.types[type_].credentials:
            self._needs_credential(made, named)
        return made

    def _needs_credential(self, made: dict[str, Any], named: list[tuple[str, str]]) -> None:
        kind, name = named[0]
        made["credentials"] = credential_name(name)
        self.differs(f"it needs a credential {made['credentials']!r} in the place of {name!r} ({kind})")

    @property
    def item(self) -> str:
        """What n8n calls `json` of the item that is worked on."""
        return f"item{self.flow.each}" if self.flow.is_many else self.flow.value

    @property
    def file(self) -> str:
        """The file of the item that is worked on."""
        if self.flow.file is None:
            raise Untranslatable("which file is meant is not known here: name the node that gives it")
        return f"item{self.flow.file}" if self.flow.is_many else self.flow.file

    def rule(self) -> Translator:
        """Translates for a rule `x => …` over the items."""
        own = self.translator
        found = Translator(replace(own.scope, json=f"x{self.flow.each}", index=None), is_rule=True)
        found.notes = own.notes
        return found

    def passed(self, port: str | None = None, guard: str = "") -> Out:
        """The items that came in go on as they are."""
        return Out(replace(self.flow, guard=guard or self.flow.guard), self.id, port)

    def each(self, accessor: str = "", port: str | None = None, *, file: str | None = None) -> Out:
        """One item goes out for each that came in; `file` leads to the file that it has."""
        output = f"nodes.{self.id}.output"
        if not self.flow.is_many:
            return Out(Flow(output + accessor, file=None if file is None else output + file), self.id, port)
        return Out(Flow(output, True, accessor, self.flow.lineage, file=file), self.id, port)

    def added(self, name: str) -> Out:
        """The item that came in goes out, with the output under a name."""
        if self.flow.is_many:
            self.differs(f"its output is the value itself, and not the item with the value as {name!r}")
            return self.each()
        return Out(Flow(f"merge({self.flow.value} ?? {{}}, {{{quoted(name)}: nodes.{self.id}.output}})"), self.id)

    def one(self, accessor: str = "", port: str | None = None, *, file: str | None = None) -> Out:
        """One item goes out."""
        output = f"nodes.{self.id}.output"
        return Out(Flow(output + accessor, file=None if file is None else output + file), self.id, port)

    def lists(self, accessor: str = "") -> Out:
        """A list of items goes out for each that came in."""
        if not self.flow.is_many:
            return self.many(accessor)
        return Out(Flow(f"flatten(map(nodes.{self.id}.output, x => x{accessor}))", True, "", self.id), self.id)

    def many(self, accessor: str = "", port: str | None = None) -> Out:
        """A new list of items goes out."""
        return Out(Flow(f"nodes.{self.id}.output{accessor}", True, "", self.id), self.id, port)


Translate = Callable[[Desk], Made]
TABLE: dict[str, Translate] = {}


def translates(*names: str) -> Callable[[Translate], Translate]:
    """Enters a translation into the table, under the names of types without their package."""

    def enter(translate: Translate) -> Translate:
        TABLE.update(dict.fromkeys(names, translate))
        return translate

    return enter


def shown(name: str) -> str:
    """A name as our documents take it: one line, not too long."""
    plain = "".join(each if each.isprintable() else " " for each in name)[:200]
    return plain if plain.strip() else "unnamed"


def credential_name(name: str) -> str:
    """A name for a credential, made of that of the original."""
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "_.-") else "-" for each in name)
    return plain.strip("-")[:100] or "credential"


def note_text(text: str) -> str:
    """A text that a note holds as it is, cut where it gets too long."""
    cut = text if len(text) <= 5_000 else f"{text[:4_999]}…"
    return escaped(cut)
