"""Node types as a table, and one of them as a page."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, prose
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import plain

Json = dict[str, Any]


def types_listing(found: list[Json]) -> RenderableType:
    """Node types, one a line, by category."""
    table = Table(kept("TYPE"), kept("CATEGORY"), prose("PURPOSE"))
    for each in found:
        table.add(plain(each["name"]), each["category"], plain(each["description"]))
    return table


def type_page(each: Json) -> RenderableType:
    """All that is known about one type."""
    schema = each["parameters"]
    fields = Table(kept("FIELD"), kept("KIND"), prose("WHAT IT IS"))
    for name, field in schema.get("properties", {}).items():
        fields.add(plain(name), plain(kind_in_words(field, schema)), plain(field_in_words(name, field, schema)))
    ports = [Text(f"  {port}: {plain(told)}") for port, told in each["portDescriptions"].items()]
    output = each["output"].get("description") or ", ".join(each["output"].get("properties", {})) or "any value"
    parts: list[RenderableType] = [Text("ports:"), *ports] if ports else []
    parts += [Text(""), fields] if schema.get("properties") else []
    return Group(
        Text(f"{plain(each['name'])}: {plain(each['description'])}"),
        Text(f"category {each['category']}, keywords {', '.join(map(plain, each['keywords'])) or 'none'}"),
        Text(f"output: {plain(output)}"),
        *_credentials(each.get("credentials", {})),
        *parts,
    )


def _credentials(slots: Mapping[str, list[str]]) -> list[Text]:
    """The types of credentials a node takes; a slot that any name fits is not told."""
    return [
        Text(f"credential{f' {plain(slot)}' if slot else ''}: {plain(', '.join(types) or 'any type')}")
        for slot, types in slots.items()
        if slot != "*"
    ]


def field_in_words(name: str, field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What a field is for, and what holds if it is not given."""
    default = field.get("default")
    is_required = name in schema.get("required", ())
    more = "Required." if is_required else "" if default in (None, "", [], {}) else f"Default `{default}`."
    return " ".join(filter(None, (field.get("description", ""), more)))


def kind_in_words(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What may stand there, in a word or two."""
    if "$ref" in field:
        return kind_in_words(schema.get("$defs", {}).get(field["$ref"].rsplit("/", 1)[-1], {}), schema)
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    for several in ("anyOf", "oneOf"):
        if several in field:
            kinds = dict.fromkeys(kind_in_words(each, schema) for each in field[several] if each.get("type") != "null")
            return " or ".join(kinds)
    kind = field.get("type", "any value")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
