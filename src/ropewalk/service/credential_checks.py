"""The credentials that a definition names: whether there are such, fit their nodes, and may be used by who saves it."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from ropewalk.core.canonical import Path
from ropewalk.core.closing_nodes import placed_nodes
from ropewalk.core.definition import Definition
from ropewalk.core.definition.slots import types_for
from ropewalk.core.definition.triggers import credential_types
from ropewalk.core.errors import InvalidDefinition, InvalidInput, Problem
from ropewalk.nodes.base import Registry
from ropewalk.nodes.credentials import misfit, slots_of
from ropewalk.service.starting import MOST_PROBLEMS
from ropewalk.store import credentials
from ropewalk.store.access import Reader

MayUse = Callable[[str], Awaitable[bool]]
"""Tells whether the actor that saves a definition may use a credential (its id)."""


async def require_credentials(
    reader: Reader, workspace: str, definition: Definition, types: Registry, may_use: MayUse | None = None
) -> None:
    """Refuses a definition, naming every place, whose nodes name credentials that they cannot get."""
    named, of_triggers = list(_named(definition)), list(_of_triggers(definition))
    if not named and not of_triggers:
        return
    names = dict.fromkeys([*(name for _, _, name, _ in named), *(name for _, name, _ in of_triggers)])
    known = await credentials.types_of(reader, workspace, names)
    allowed = {name: may_use is None or await may_use(key) for name, (_, key) in known.items()}
    problems = []
    for path, name, wanted_types in of_triggers:
        if name not in known or not allowed[name]:
            problems.append(Problem(path, f"there is no credential {name!r} that you may use here"))
        elif known[name][0] not in wanted_types:
            problems.append(Problem(path, misfit(name, known[name][0], wanted_types)))
    for path, node, name, slot in named:
        if name not in known or not allowed[name]:
            # Foreign and absent are the same to an actor that may not use it.
            problems.append(Problem(path, f"there is no credential {name!r} that you may use here"))
        elif wanted := _misfit(types, node, slot, name, known[name][0]):
            problems.append(Problem(path, wanted))
    if problems:
        raise InvalidDefinition(problems[:MOST_PROBLEMS])


def _named(definition: Definition) -> Iterator[tuple[Path, dict[str, Any], str, str]]:
    """The place, the node, the name and the slot of each credential."""
    for place, node in placed_nodes(definition.document):
        named = node.get("credentials")
        for slot, name in slots_of(named).items():
            path: Path = (*place, "credentials")
            yield path if isinstance(named, str) else (*path, slot), node, name, slot


async def require_credential_of(
    reader: Reader, workspace: str, trigger: Mapping[str, Any], may_use: MayUse | None
) -> None:
    """Refuses a trigger that is made beside a definition, and names a credential that it cannot get."""
    name, types = trigger.get("credential"), credential_types(trigger)
    if name is None or not types:
        return
    known = await credentials.types_of(reader, workspace, {name: None})
    if name not in known or not (may_use is None or await may_use(known[name][1])):
        problem = f"there is no credential {name!r} that you may use here"
    elif known[name][0] not in types:
        problem = misfit(name, known[name][0], types)
    else:
        return
    raise InvalidInput([Problem(("settings", "credential"), problem)])


def _of_triggers(definition: Definition) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """The place, the name and the types of the credential of each webhook (of its senders) and queue (where it is)."""
    for place, trigger in enumerate(definition.triggers):
        if "credential" in trigger and (types := credential_types(trigger)):
            yield ("triggers", place, "credential"), trigger["credential"], types


def _misfit(types: Registry, node: dict[str, Any], slot: str, name: str, found: str) -> str | None:
    info = types.infos().get(node["type"])
    wanted = None if info is None else types_for(info, slot)
    return misfit(name, found, wanted) if wanted and found not in wanted else None
