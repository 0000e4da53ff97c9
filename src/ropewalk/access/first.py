"""The first start: somebody has to be able to come in."""

import secrets
from typing import Final

from ropewalk.access.keys import Wanted, make
from ropewalk.access.rights import Role
from ropewalk.store import keys
from ropewalk.store import secrets as kept
from ropewalk.store.access import Store
from ropewalk.store.workspaces import DEFAULT

BY: Final = "first-start"
_ELECTED: Final = "first-admin"


async def ensure_admin(store: Store) -> str | None:
    """The token of the first root key, to be shown once; None if anybody was ever given a key."""
    async with store.transaction() as tx:
        mine = secrets.token_hex(16)
        # Of several servers that start at once, the first to leave its word makes the key.
        if await keys.has_any(tx) or await kept.keep(tx, _ELECTED, mine) != mine:
            return None
        wanted = Wanted(workspace=DEFAULT, name="first admin", role=Role.ADMIN, is_root=True)
        _, token = await make(tx, wanted, BY, store.now())
        return token
