"""Events that somebody outside publishes: who did is written down."""

import uuid_utils

from ropewalk.core.canonical import JSON
from ropewalk.service.verbs import Service
from ropewalk.store import audit
from ropewalk.store.rows import AuditEntry


async def publish(service: Service, subject: str, payload: JSON, by: str) -> int:
    """Tell every execution that waits for such an event; how many were. Durable when it returns.

    Who asked is in the audit log before anybody is told, so that nobody is ever told without.
    """
    store = service.store
    entry = AuditEntry(
        str(uuid_utils.uuid7()), store.now(), service.workspace, by, "publish", subject, None, None, None
    )
    async with store.transaction() as tx:
        await audit.append(tx, entry)
    return await service.publish(subject, payload)
