"""The rules of giving: an actor grants, changes or takes away only what they hold themselves, and for no longer."""

from collections.abc import Collection
from typing import Final

import uuid_utils
from msgspec import Struct

from ropewalk.access.rights import RIGHTS, Right, Role
from ropewalk.core.errors import Forbidden
from ropewalk.core.instant import rfc3339
from ropewalk.store import keys
from ropewalk.store.access import Reader
from ropewalk.store.rows import AuditEntry

SUBJECT: Final = "key:"
"""How the name of a key begins where actors are named."""


class Giver(Struct, frozen=True):
    """Who gives, where, and what they hold of what is given there; a key that expires holds it until `expires_at`."""

    subject: str
    workspace: str
    rights: frozenset[Right]
    expires_at: int | None = None

    def require(self, given: Collection[Right]) -> None:
        """Forbidden, with what is missing, unless the giver holds all of it."""
        lacking = [right for right in Right if right in given and right not in self.rights]
        if lacking:
            raise Forbidden(f"a caller cannot give or take what they lack: here the right to {', '.join(lacking)}")

    def require_role(self, *roles: str | None) -> None:
        """Forbidden unless the giver holds all that these roles allow."""
        for role in roles:
            if role is not None:
                self.require(RIGHTS[Role(role)])

    async def require_end(self, reader: Reader, subject: str, before: str | None, role: str) -> None:
        """Forbidden if the subject would keep, beyond the end of the giver, more than the role from before.

        Members and shares have no end of their own: only a key that ends no later than the giver may get them.
        """
        kept = frozenset() if before is None else RIGHTS[Role(before)]
        if self.expires_at is None or RIGHTS[Role(role)] <= kept:
            return
        key = await keys.get(reader, subject.removeprefix(SUBJECT)) if subject.startswith(SUBJECT) else None
        if key is None or key.expires_at is None or key.expires_at > self.expires_at:
            raise Forbidden(
                f"the key that gives ends at {rfc3339(self.expires_at)}, and {subject} would keep the role {role}: "
                "use a key that does not expire, or give it to a key that ends no later"
            )

    def entry(self, now: int, verb: str, what: str, *, before: str | None = None, after: str | None = None,
              detail: str | None = None) -> AuditEntry:  # fmt: skip
        """The audit row of what the giver did."""
        new_id = str(uuid_utils.uuid7())
        return AuditEntry(new_id, now, self.workspace, self.subject, verb, what, before, after, detail)
