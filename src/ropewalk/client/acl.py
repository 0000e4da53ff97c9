"""With whom a workflow is shared, beyond those who have a role in its workspace."""

from typing import Final

from ropewalk.client.answers import LetGo, Member, Role
from ropewalk.client.definitions import address
from ropewalk.client.talking import Series, Talk, delete, put
from ropewalk.client.verbs import Speaker, listing, verb

ACL: Final = "acl"


class SharingVerbs(Speaker):
    """What can be done about sharing; `workflow` is an id or a name."""

    @listing
    def shares(self, workflow: str, limit: int | None = None) -> Series[Member]:
        """With whom the workflow is shared, and in which role, by subject."""
        return self._pages(address(workflow, ACL), limit)

    @verb
    def share(self, workflow: str, subject: str, role: Role) -> Talk[Member]:
        """Share it with a subject, or in another role: with `user:<sub of the token>` or `key:<id>`."""
        return self._ask(put(address(workflow, ACL), {"subject": subject, "role": role}))

    @verb
    def unshare(self, workflow: str, subject: str) -> Talk[LetGo]:
        """Share it with this subject no more."""
        return self._ask(delete(address(workflow, ACL), {"subject": subject}))
