"""The description of the HTTP API, and the page people read, both made from the routes."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from ropewalk.api.app import assemble

_INTRODUCTION: Final = """\
# HTTP API

Every operation is under one gate: send `Authorization: Bearer <API key or token>`, and say with `?workspaceId=` which
workspace is meant unless it is the key's own. The full description with every schema is `docs/openapi.json`, served
as `/api/v1/openapi.json`.

- **Refusals** are problems (RFC 9457): `detail` says what is wrong, `problems` which fields, `instance` is the id to
  ask about. What does not exist and what is not yours to see are the same 404; 403 is for a right you lack where you
  may look.
- **Lists** come in pages of at most 200; `next` is the cursor of the page after, null at the end.
- **Starts** under an `Idempotency-Key` are accepted once. **New versions** of a definition name the ETag of the one
  they are made from in `If-Match`, so that a caller cannot overwrite what they have not seen: 428 without, 412 if it is
  another.
- **503** comes with `Retry-After`: nothing is wrong with the request, and nothing of it was done.
"""


@cache
def _description() -> dict[str, Any]:
    return assemble(version("ropewalk")).openapi()


def render_openapi() -> str:
    """The description as it is committed: sorted as the routes are, one field a line."""
    return json.dumps(_description(), indent=2, ensure_ascii=False) + "\n"


def render() -> str:
    """The page: operations by tag, with what they need, take and give."""
    parts = [_INTRODUCTION]
    for tag in _description()["tags"]:
        parts.append(f"\n## {tag['name']}\n\n{tag['description']}\n")
        parts.extend(_operation(*each) for each in _operations(tag["name"]))
    return "".join(parts)


def _operations(tag: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in _description()["paths"].items():
        for method, operation in methods.items():
            if operation["tags"] == [tag]:
                yield method.upper(), path, operation


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    right = operation.get("x-right")
    need = "open to all" if right is None else f"needs `{right}`"
    lines = [f"\n### `{method} {path}`\n", f"{operation['description']}\n", f"`{operation['operationId']}` · {need}\n"]
    lines.extend(_parameters(operation))
    lines.extend(_exchange(operation))
    return "\n".join(lines)


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    found = [each for each in operation.get("parameters", []) if each["name"] != "workspaceId" or each["in"] == "path"]
    if found:
        yield "| parameter | in | |\n|---|---|---|"
        for each in found:
            yield f"| `{each['name']}` | {each['in']} | {_about(each)} |"
        yield ""


def _about(parameter: dict[str, Any]) -> str:
    words = ["required" if parameter.get("required") else "", parameter.get("description", "")]
    schema = parameter["schema"]
    if "enum" in schema:
        words.append(", ".join(f"`{each}`" for each in schema["enum"]))
    if schema.get("default") not in (None, ""):
        words.append(f"default `{json.dumps(schema['default'])}`")
    return "; ".join(word.rstrip(".") for word in words if word)


def _exchange(operation: dict[str, Any]) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {})
    for kind, body in content.items():
        yield from _shown(f"Body (`{kind}`)", body)
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            for body in answer.get("content", {}).values():
                yield from _shown(f"Answer {status}", body)


def _shown(title: str, body: dict[str, Any]) -> Iterator[str]:
    """The example of a body, from itself or from its schema."""
    schema = _resolved(body.get("schema", {}))
    name = schema.get("title", "")
    yield f"{title}{f': {name}' if name else ''}\n"
    example = body.get("example", next(iter(schema.get("examples", [])), None))
    if isinstance(example, str):
        yield f"```yaml\n{example}```\n"
    elif example is not None:
        yield f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```\n"


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: dict[str, Any] = _description()["components"]["schemas"][reference.rpartition("/")[2]]
    return found
