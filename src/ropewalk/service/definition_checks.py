"""What a definition may not ask for here."""

from collections.abc import Collection

from ropewalk.core.closing_nodes import placed_nodes
from ropewalk.core.definition import Definition
from ropewalk.core.errors import InvalidDefinition, Problem
from ropewalk.service.starting import MOST_PROBLEMS


def require_served(definition: Definition, *, has_pools: bool) -> None:
    """What a definition may ask for and this engine cannot give is refused, not ignored."""
    why = "one process on one file has no worker pools, and no runner can reach it; leave the field out"
    problems = [
        Problem((*place, "pool"), why)
        for place, node in placed_nodes(definition.document)
        if "pool" in node and not has_pools
    ]
    if problems:
        raise InvalidDefinition(problems)


def require_known_rate_limits(definition: Definition, known: Collection[str]) -> None:
    """A rate limit that is named and not known is a slip of the pen: its runs would wait until there is one."""
    there_are = f"there are {', '.join(sorted(known)[:MOST_PROBLEMS])}" if known else "there are none"
    problems = [
        Problem((*place, "rateLimit"), f"there is no rate limit {node['rateLimit']!r}; {there_are}")
        for place, node in placed_nodes(definition.document)
        if node.get("rateLimit", "") and node["rateLimit"] not in known
    ]
    if problems:
        raise InvalidDefinition(problems[:MOST_PROBLEMS])
