"""Members of a workspace: who has which role there."""

from typing import Final

from ropewalk.client.answers import LetGo, Member, Role
from ropewalk.client.talking import Series, Talk, delete, put
from ropewalk.client.verbs import Speaker, listing, verb

PATH: Final = "/members"


class MemberVerbs(Speaker):
    """What can be done with members. A subject is `user:<sub of the token>` or `key:<id>`."""

    @listing
    def members(self, limit: int | None = None) -> Series[Member]:
        """The members of the workspace, by subject. Keys at home there are among the keys."""
        return self._pages(PATH, limit)

    @verb
    def put_member(self, subject: str, role: Role) -> Talk[Member]:
        """Give a subject a role in the workspace, or another one."""
        return self._ask(put(PATH, {"subject": subject, "role": role}))

    @verb
    def remove_member(self, subject: str) -> Talk[LetGo]:
        """Let a subject go. What is shared with them stays shared."""
        return self._ask(delete(PATH, {"subject": subject}))
