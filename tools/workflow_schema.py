"""Renders `workflow.schema.json`, for the docs and the wheel: the workflow document, from the tables that check it."""

import json

from ropewalk.core.definition.fields import EDGE, NODE, TOP
from ropewalk.core.definition.kinds import Schema


def workflow_schema() -> Schema:
    """The document as JSON Schema 2020-12; looser than the check at save, which also sees types and references."""
    whole = TOP.schema()
    for name, element in (("nodes", "node"), ("edges", "edge")):
        whole["properties"][name]["items"] = {"$ref": f"#/$defs/{element}"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ropewalk workflow",
        **whole,
        "$defs": {"node": NODE.schema(), "edge": EDGE.schema()},
    }


def render() -> str:
    """The schema as text, the same for the same tables."""
    return json.dumps(workflow_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(render(), end="")
