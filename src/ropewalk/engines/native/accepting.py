"""Accepting executions inside somebody's transaction: many at once, or together with what else must be true."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ropewalk.engines.base import AT_ONCE, StartRequest
from ropewalk.engines.native.projecting import RowsByStatement, put_rows
from ropewalk.store.access import Transaction

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine


async def accept(engine: "NativeEngine", tx: Transaction, requests: Sequence[StartRequest]) -> list[str]:
    """Write executions that wait for their turn; accepted with the transaction, all or none. Call `accepted` then."""
    batch: RowsByStatement = defaultdict(list)
    ids = []
    for place, request in enumerate(requests):
        if place % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
        live = engine.memory.new(request, engine.store.now())
        engine.audit(live, request.actor, "start")
        put_rows(live, None, batch)
        ids.append(live.id)
    for statement, some in batch.items():
        await tx.execute_many(statement, some)
    return ids
