"""The node of the fault campaign: what it does is in the ledger of effects first."""

from pathlib import Path

import ropewalk
from ropewalk.checker import Effect
from ropewalk.nodes.base import NodeContext
from tests.crash.ledgers import Ledger

EFFECTS = Ledger(Path("effects.jsonl"), Effect)
"""In the folder that the server was started in."""


@ropewalk.node(retry={"maxAttempts": 20, "delay": "50ms", "factor": 1.5, "maxDelay": "2s"})
async def touch(context: NodeContext, value: int = 0) -> int:
    """Leave a trace outside, and hand on the value."""
    key = context.idempotency_key
    EFFECTS.write(Effect(context.execution, context.node, context.item, context.attempt, key))
    return value
