"""A few node types for definitions in tests."""

from ropewalk.core.definition import NodeTypeInfo


def _object(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_TEXT = {"type": "string"}
_ALL = [
    NodeTypeInfo("noop", parameters={"type": "object"}, credentials={"*": ()}),
    NodeTypeInfo("set", parameters={"type": "object"}),
    NodeTypeInfo("if", ports=("true", "false"), parameters=_object(["condition"], condition={"type": "boolean"})),
    NodeTypeInfo("switch", ports=None, parameters={"type": "object"}),
    NodeTypeInfo("choose", ports=None, ports_with=lambda given: given.get("ports")),
    NodeTypeInfo("torn", ports=None, ports_with=lambda given: given["ports"]),
    NodeTypeInfo("approval", ports=("approved", "rejected"), parameters=_object(title=_TEXT), is_wait=True),
    NodeTypeInfo(
        "listen",
        parameters={"type": "object"},
        is_wait=True,
        expressions=("filter",),
        credentials={"left": ("a",), "right": ()},
    ),
    NodeTypeInfo("log", parameters=_object(["message"], message=_TEXT)),
    NodeTypeInfo("email.send", parameters=_object(["to"], to=_TEXT)),
    NodeTypeInfo(
        "http.request",
        parameters=_object(
            ["url"],
            url={"type": "string", "minLength": 8},
            method={"enum": ["GET", "POST"]},
            retries={"type": "integer", "minimum": 0},
        ),
    ),
]

NODE_TYPES = {each.name: each for each in _ALL}
