"""Credentials, their types and their shares as tables and pages."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, optional, prose
from ropewalk.cli.views.node_types import field_in_words, kind_in_words
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import lapse, moment, plain

Json = dict[str, Any]


def credentials_listing(found: list[Json], now: int) -> RenderableType:
    """Credentials, one a line."""
    if not found:
        return Text("no credentials")
    table = Table(kept("NAME"), kept("TYPE"), optional("LAST USED"), prose("HOSTS"))
    for each in found:
        table.add(plain(each["name"]), each["type"], _used(each, now), plain(", ".join(each["hosts"]) or "any"))
    return table


def credential_page(each: Json, now: int) -> RenderableType:
    """All that is told of one credential."""
    fields = Table(kept("FIELD"), prose("VALUE"))
    for name, value in {**each["values"], **each["secrets"]}.items():
        fields.add(plain(name), plain(f"({value})" if value == "stored" else str(value)))
    users = ", ".join(plain(one["name"]) for one in each["usedBy"]) or "no published workflow"
    return Group(
        Text(f"{plain(each['name'])}: {each['type']}, revision {each['revision']}"),
        Text(f"hosts: {plain(', '.join(each['hosts']) or 'any')}"),
        Text(f"changed by {plain(each['updatedBy'])} at {each['updatedAt'][:16]}, last used {_used(each, now)}"),
        Text(f"used by: {users}"),
        Text(""),
        fields,
    )


def types_listing(found: list[Json]) -> RenderableType:
    """Types of credentials, one a line."""
    table = Table(kept("TYPE"), prose("WHAT IT IS"))
    for each in found:
        table.add(plain(each["name"]), plain(each["summary"]))
    return table


def type_page(each: Json) -> RenderableType:
    """The fields of one type."""
    schema = each["fields"]
    table = Table(kept("FIELD"), kept("KIND"), prose("WHAT IT IS"))
    for name, field in schema.get("properties", {}).items():
        kind = "secret" if field.get("writeOnly") else kind_in_words(field, schema)
        table.add(plain(name), plain(kind), plain(field_in_words(name, field, schema)))
    return Group(Text(f"{plain(each['name'])}: {plain(each['summary'])}"), Text(""), table)


def shares_listing(found: list[Json]) -> RenderableType:
    """Who may use a credential, one a line."""
    if not found:
        return Text("shared with no subject: members that may use credentials use it")
    table = Table(kept("SUBJECT"), optional("SINCE"), optional("BY"))
    for each in found:
        table.add(plain(each["subject"]), each["createdAt"][:16], plain(each["createdBy"]))
    return table


def _used(each: Json, now: int) -> str:
    used = moment(each["lastUsedAt"])
    return "never" if used is None else f"{lapse(now - used)} ago"
