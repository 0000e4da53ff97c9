"""Renders `docs/nodes.md`: every built-in node type, from what the types say of themselves."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ropewalk.cli.views.node_types import field_in_words, kind_in_words
from ropewalk.core.definition import NodeTypeInfo
from ropewalk.core.definition.node_type import CATEGORIES
from ropewalk.nodes.base import Registry

_INTRODUCTION: Final = """\
# Node types

What a node can be. Each field may hold [expressions](expressions.md); what a field must be is checked when a workflow
is saved, as far as it is known then, and when the node runs. Every node also has the port `error`, and waits have the
port `expired`. `ropewalk nodes` and `GET /api/v1/workflow/node-types` tell the same, with the types of installed
packages and of your own modules. For each type there is an example in `examples/nodes/`.

Paths of fields are like `customer.city`, `lines[0].sku`, `lines[-1]` or `["a key with dots"]`.
"""
_HEADINGS: Final = {
    "data": "Data",
    "control": "Control",
    "wait": "Waiting",
    "reach": "Reaching out",
    "code": "Code",
    "custom": "Others",
}


def render() -> str:
    """The whole page."""
    infos = Registry.builtin().infos()
    lines = [_INTRODUCTION]
    for category in CATEGORIES:
        names = [name for name in sorted(infos) if infos[name].about.category == category]
        if names:
            lines += [f"## {_HEADINGS[category]}\n", *_overview(infos[name] for name in names), ""]
            lines += [line for name in names for line in _type(infos[name])]
    return "\n".join(lines).rstrip() + "\n"


def _overview(infos: Iterator[NodeTypeInfo]) -> Iterator[str]:
    yield "| type | |"
    yield "|---|---|"
    for info in infos:
        yield f"| [`{info.name}`](#{info.name.replace('.', '')}) | {info.summary} |"


def _type(info: NodeTypeInfo) -> Iterator[str]:
    yield f"### `{info.name}`\n"
    yield f"{info.summary}\n"
    schema = info.parameters
    if schema["properties"]:
        yield from _table(schema, schema)
        yield ""
    for name, model in schema.get("$defs", {}).items():
        if "properties" in model:
            yield f"A {_spaced(name)}:\n"
            yield from _table(model, schema)
            yield ""
    for port, told in info.about.ports.items():
        yield f"- Port `{port}`: {told}"
    if info.about.ports:
        yield ""
    for slot, types in info.credentials.items():
        named = f" `{slot}`" if slot else ""
        yield f"[Credential](credentials.md){named}: {', '.join(f'`{each}`' for each in types)}.\n"
    yield f"Output: {_output(info.about.output)}\n"


def _table(model: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| field | | what it is | example |"
    yield "|---|---|---|---|"
    for name, field in model["properties"].items():
        cells = (kind_in_words(field, schema), field_in_words(name, field, model), _example(field))
        yield f"| `{name}` | {' | '.join(cells)} |"


def _example(field: Mapping[str, Any]) -> str:
    text = json.dumps(field["examples"][0], ensure_ascii=False) if field.get("examples") else ""
    return f"`{text}`".replace("|", "\\|") if text else ""


def _output(output: Mapping[str, Any]) -> str:
    if "properties" not in output:
        return str(output.get("description", "any value."))
    parts = (f"`{name}`: {part['description']}" for name, part in output["properties"].items())
    return " ".join(filter(None, (output.get("description"), *parts)))


def _spaced(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


if __name__ == "__main__":
    print(render(), end="")
