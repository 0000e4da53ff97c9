"""The first key of a store: without one, no caller could come in."""

import secrets
from typing import Final

from ropewalk.access.keys import Wanted, make
from ropewalk.access.rights import Role
from ropewalk.store import keys
from ropewalk.store import secrets as kept
from ropewalk.store.access import Store, Transaction
from ropewalk.store.workspaces import DEFAULT

BY: Final = "start"
_ELECTED: Final = "first-admin"


async def ensure_admin(store: Store) -> str | None:
    """The token of the first root key, to be shown once; None if a key was ever made."""
    async with store.transaction() as tx:
        mine = secrets.token_hex(16)
        # Of several servers that start at once, the first to leave its word makes the key.
        if await keys.has_any(tx) or await kept.keep(tx, _ELECTED, mine) != mine:
            return None
        return await _root_key(tx, "first admin", store.now())


async def another_admin(store: Store) -> str:
    """The token of a further root key, for an operator who has the store but lost the first."""
    async with store.transaction() as tx:
        return await _root_key(tx, "another admin", store.now())


async def _root_key(tx: Transaction, name: str, now: int) -> str:
    wanted = Wanted(workspace=DEFAULT, name=name, role=Role.ADMIN, is_root=True)
    _, token = await make(tx, wanted, BY, now)
    return token
