"""Who may let others use a credential."""

from ropewalk.access.granting import Giver
from ropewalk.access.rights import Right, Role
from ropewalk.store.access import Reader


async def require_giving(reader: Reader, giver: Giver, subject: str) -> None:
    """Forbidden unless the giver may use credentials itself, and the subject keeps no permit beyond the giver's end."""
    giver.require({Right.USE_CREDENTIALS})
    await giver.require_end(reader, subject, None, Role.EDITOR)
