"""The one rule of giving: nobody grants, changes or takes away what they lack themselves."""

from collections.abc import Collection

import uuid_utils
from msgspec import Struct

from ropewalk.access.rights import RIGHTS, Right, Role
from ropewalk.core.errors import Forbidden
from ropewalk.store.rows import AuditEntry


class Giver(Struct, frozen=True):
    """Who gives, where, and what they hold of what is given there."""

    subject: str
    workspace: str
    rights: frozenset[Right]

    def require(self, given: Collection[Right]) -> None:
        """Forbidden, with what is missing, unless the giver holds all of it."""
        lacking = [right for right in Right if right in given and right not in self.rights]
        if lacking:
            raise Forbidden(f"nobody can give or take what they lack: here the right to {', '.join(lacking)}")

    def require_role(self, *roles: str | None) -> None:
        """Forbidden unless the giver holds all that these roles allow."""
        for role in roles:
            if role is not None:
                self.require(RIGHTS[Role(role)])

    def entry(self, now: int, verb: str, what: str, *, before: str | None = None, after: str | None = None,
              detail: str | None = None) -> AuditEntry:  # fmt: skip
        """The audit row of what the giver did."""
        new_id = str(uuid_utils.uuid7())
        return AuditEntry(new_id, now, self.workspace, self.subject, verb, what, before, after, detail)
