"""API keys of a workspace: made, listed, revoked."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from urllib.parse import quote

from ropewalk.client.answers import Key, NewKey, Right, Role
from ropewalk.client.talking import Series, Talk, delete, post, said
from ropewalk.client.verbs import Speaker, listing, verb

PATH: Final = "/keys"


class KeyVerbs(Speaker):
    """What can be done with keys, by callers who may administer the workspace. A caller cannot give what they lack."""

    @listing
    def keys(self, limit: int | None = None) -> Series[Key]:
        """The keys of the workspace, the newest first, revoked and expired ones too."""
        return self._pages(PATH, limit)

    @verb
    def create_key(self, name: str, role: Role, *, scopes: Sequence[Right] | None = None,
                   pools: Sequence[str] | None = None, expires_in: timedelta | None = None,
                   root: bool = False) -> Talk[NewKey]:  # fmt: skip
        """Make a key; its token is in this answer and nowhere else.

        `scopes` are all that is used of the role, `pools` all that a runner takes work from; None is no limit.
        """
        wanted = said(
            scopes=None if scopes is None else list(scopes),
            pools=None if pools is None else list(pools),
            expiresInSeconds=None if expires_in is None else int(expires_in.total_seconds()),
        )
        # Sent twice it would make two keys, the first of which is unknown to the caller.
        return self._ask(post(PATH, {"name": name, "role": role, "root": root, **wanted}, doubles=True))

    @verb
    def revoke_key(self, key: str) -> Talk[Key]:
        """The key of this id and the sessions it opened are out, on every server within five seconds."""
        return self._ask(delete(f"{PATH}/{quote(key, safe='')}"))
