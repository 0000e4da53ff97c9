"""Workflows as tables, as YAML, and what versions change."""

from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, optional, when
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import clock, json_line, one_line, plain

Json = dict[str, Any]
FEW: Final = 10
_FIRST: Final = (
    "ropewalk", "id", "type", "from", "to", "on", "name", "description", "input", "vars", "timeout", "onFailure",
    "concurrencyKey", "maxParallel", "triggers", "nodes", "edges", "output",
)  # fmt: skip
"""The order in which people write the keys of a document, of a node and of an edge."""


def workflows_listing(found: list[Json]) -> RenderableType:
    """Workflows, one a line."""
    if not found:
        return Text("no workflows")
    table = Table(kept("NAME"), kept("PUBLISHED"), kept("LATEST"), when("CREATED"), optional())
    for each in found:
        archived = "" if each["archivedAt"] is None else "archived"
        published = "none" if each["published"] is None else f"v{each['published']}"
        table.add(each["name"], published, f"v{each['latest']}", clock(each["createdAt"]), archived)
    return table


def document_text(found: Json) -> str:
    """A version as a file that can be saved again, with what is known of the others before it."""
    import yaml  # here, since no other command prints one

    published = "none" if found["published"] is None else f"v{found['published']}"
    head = [f"# {plain(one_line(found['name']))} v{found['version']} of v{found['latest']}, published: {published}"]
    head += [
        f"# v{each['version']}  {clock(each['createdAt'])}  {plain(one_line(each['createdBy']))}"
        for each in found["versions"][:FEW]
    ]
    if len(found["versions"]) > FEW:
        head.append(f"# … {len(found['versions']) - FEW} more versions")
    body: str = yaml.safe_dump(_ordered(found["document"]), sort_keys=False, allow_unicode=True, width=100)
    return "\n".join(head) + "\n" + body


def _ordered(document: Json) -> Json:
    """The document with its keys, and those of nodes and edges, in the order people write them."""
    made = _sorted(document)
    for name in ("nodes", "edges"):
        if isinstance(made.get(name), list):
            made[name] = [_sorted(each) for each in made[name]]
    return made


def _sorted(value: Json) -> Json:
    return {name: value[name] for name in sorted(value, key=lambda name: _FIRST.index(name) if name in _FIRST else 99)}


def differences_listing(name: str, found: Json) -> RenderableType:
    """What a version changes: lines that begin with +, - or ~."""
    head = Text(f"{plain(one_line(name))}: v{found['from']} → v{found['to']}", style="bold")
    lines = [
        *(_changed(each["field"], each) for each in found["changes"]),
        *(Text(f"+ node {json_line(each, 300)}", style="green") for each in found["nodesAdded"]),
        *(Text(f"- node {json_line(each, 300)}", style="red") for each in found["nodesRemoved"]),
        *(
            _changed(f"{node['id']}.{each['field']}", each)
            for node in found["nodesChanged"]
            for each in node["changes"]
        ),
        *(Text(f"+ edge {_edge(each)}", style="green") for each in found["edgesAdded"]),
        *(Text(f"- edge {_edge(each)}", style="red") for each in found["edgesRemoved"]),
    ]
    return Group(head, *(lines or [Text("nothing but the order")]))


def _changed(place: str, change: Json) -> Text:
    before, after = (json_line(change[name], 300) for name in ("before", "after"))
    return Text(f"~ {plain(place)}: {before} → {after}")


def _edge(edge: Json) -> str:
    taken = f" on {edge['on']}" if edge.get("on") is not None else ""
    when = f" when {edge['when']}" if edge.get("when") is not None else ""
    return plain(f"{edge['from']} → {edge['to']}{taken}{when}")
