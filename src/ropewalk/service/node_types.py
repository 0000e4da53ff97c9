"""Node types as the API and the command line show them."""

from typing import Any

from ropewalk.core.definition import NodeTypeInfo

Json = dict[str, Any]


def shown_type(info: NodeTypeInfo) -> Json:
    """A node type as JSON: what it is for, its ports, and the schemas of its parameters and its output."""
    about = info.about
    return {
        "name": info.name,
        "title": about.title,
        "description": info.summary,
        "category": about.category,
        "icon": about.icon,
        "keywords": list(about.keywords),
        "ports": None if info.ports is None else list(info.ports),
        "portDescriptions": dict(about.ports),
        "isWait": info.is_wait,
        "parameters": info.parameters,
        "output": dict(about.output),
    }
