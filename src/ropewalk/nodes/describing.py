"""What palette, reference and forms tell people of a node type, made of what the type says of itself."""

import re
from typing import Any

from msgspec.structs import replace

from ropewalk.core.definition.node_type import CATEGORIES, About
from ropewalk.core.schema import check_schema

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[._-]+")


def checked_about(name: str, about: About) -> About:
    """What a type of this name says of itself, with a title; ValueError if it makes no sense."""
    if about.category not in CATEGORIES:
        raise ValueError(f"{name}: its category must be one of {', '.join(CATEGORIES)}")
    if problems := check_schema(about.output):
        raise ValueError(f"{name}: its output cannot be described: {problems[0]}")
    return about if about.title else replace(about, title=title_of(name))


def titled(schema: Any) -> Any:
    """The schema with a title of each property made of its name, and without those that pydantic makes up."""
    if isinstance(schema, list):
        return [titled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {keyword: _titled_part(keyword, part) for keyword, part in schema.items() if keyword != "title"}


def _titled_part(keyword: str, part: Any) -> Any:
    if keyword == "properties":
        return {name: {"title": title_of(name), **titled(inner)} for name, inner in part.items()}
    if keyword in ("patternProperties", "$defs"):
        return {name: titled(inner) for name, inner in part.items()}
    return part if keyword in ("default", "const", "enum", "examples") else titled(part)


def title_of(name: str) -> str:
    """The name of a field or a type as people read it: `maxRedirects` is "Max redirects"."""
    words = _WORD_START.sub(" ", _SEPARATORS.sub(" ", name)).strip().lower()
    return words[:1].upper() + words[1:]
