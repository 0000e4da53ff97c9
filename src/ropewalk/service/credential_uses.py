"""Which workflows use a credential, as their published versions say."""

from typing import Any, Final

import msgspec

from ropewalk.core.closing_nodes import placed_nodes
from ropewalk.nodes.credentials import slots_of
from ropewalk.store import credentials
from ropewalk.store.access import Store

MOST: Final = 200
"""Of more workflows than these, the first by name are told."""


async def used_by(store: Store, workspace: str, name: str) -> list[dict[str, Any]]:
    """The workflows whose published version names the credential, by name."""
    found: list[dict[str, Any]] = []
    after = ""
    while page := await credentials.published_with_credentials(store, workspace, after=after):
        found += [
            {"id": each.workflow, "name": each.name, "version": each.version}
            for each in page
            if _names(each.document, name)
        ]
        after = page[-1].name
        if len(found) >= MOST:
            break
    return found[:MOST]


def _names(document: str, name: str) -> bool:
    nodes = placed_nodes(msgspec.json.decode(document))
    return any(name in slots_of(node.get("credentials")).values() for _, node in nodes)
