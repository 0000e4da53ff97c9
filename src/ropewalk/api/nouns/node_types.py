"""Node types: what a node can be here, with the JSON Schema of its parameters."""

from typing import Annotated, Any

from fastapi import Path

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Cursor, Limit, Page, exemplified, page
from ropewalk.core.errors import NotFound
from ropewalk.service.node_types import shown_type

routes = Routes("/workflow/node-types", "Node types")

TypeName = Annotated[str, Path(alias="type", max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$")]


class NodeType(Answer):
    """A kind of node. `ports` are those edges can name besides `error`; null if the parameters decide them.

    `parameters` and `output` are JSON Schemas; each field has a title, a description and examples. `category`, `icon`
    and `keywords` are for palettes. `credentials` are the types of credentials it takes, by slot; "" is the slot of a
    node that names one, "*" any slot, and no types mean any.
    """

    model_config = exemplified(
        Answer,
        {
            "name": "if",
            "title": "If",
            "description": "Takes the port true or false.",
            "category": "control",
            "icon": "split",
            "keywords": ["condition", "branch"],
            "ports": ["true", "false"],
            "portDescriptions": {"true": "The condition holds.", "false": "The condition does not hold."},
            "isWait": False,
            "parameters": {"type": "object", "required": ["condition"], "properties": {"condition": {}}},
            "output": {"type": "boolean"},
            "credentials": {},
        },
    )

    name: str
    title: str
    description: str
    category: str
    icon: str
    keywords: list[str]
    ports: list[str] | None
    port_descriptions: dict[str, str]
    is_wait: bool
    parameters: dict[str, Any]
    output: dict[str, Any]
    credentials: dict[str, list[str]]


@routes.get("", Right.READ, response_model=Page[NodeType])
async def list_node_types(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """Every node type of this server, by name."""
    listing = call.listing("node-types")
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    infos = call.service.types.infos()
    names = sorted(name for name in infos if name > after)[:limit]
    found = [shown_type(infos[name]) for name in names]
    return page(call.backend.cursors, listing, found, limit, names[-1] if names else None)


@routes.get("/{type}", Right.READ, response_model=NodeType)
async def get_node_type(call: Caller, name: TypeName) -> dict[str, Any]:
    """One node type."""
    info = call.service.types.infos().get(name)
    if info is None:
        raise NotFound(f"there is no node type {name!r}")
    return shown_type(info)
