"""Starts: one, or up to a thousand in one transaction; under an idempotency key the same request is done once."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ropewalk.core.canonical import content_hash
from ropewalk.core.errors import Conflict, InvalidInput, Problem
from ropewalk.engines.base import StartRequest
from ropewalk.engines.native.accepting import accept, accepted
from ropewalk.engines.native.engine import NativeEngine
from ropewalk.store import idempotency
from ropewalk.store.access import Transaction
from ropewalk.store.rows import IdempotencyEntry

LARGEST_BATCH: Final = 1_000
LONGEST_KEY: Final = 255
ROUTE: Final = "start"


async def start_all(engine: NativeEngine, requests: Sequence[StartRequest], key: str | None) -> list[str]:
    """Accept them, all or none; their ids. What was asked before under the key gets the ids it got then."""
    _check(requests, key)
    if not requests:
        return []
    try:
        ids = await _accepted(engine, requests, key)
    except Conflict:
        if key is None:
            raise
        # Someone with the same key was faster: this time the answer is there, or the request is another one.
        ids = await _accepted(engine, requests, key)
    accepted(engine)
    return ids


def _check(requests: Sequence[StartRequest], key: str | None) -> None:
    if len(requests) > LARGEST_BATCH:
        raise InvalidInput([Problem(("starts",), f"has {len(requests)} entries, {LARGEST_BATCH} are allowed at once")])
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        raise InvalidInput([Problem(("key",), f"must be 1 to {LONGEST_KEY} printable characters")])


async def _accepted(engine: NativeEngine, requests: Sequence[StartRequest], key: str | None) -> list[str]:
    async with engine.store.transaction() as tx:
        return await (accept(engine, tx, requests) if key is None else _once(engine, tx, requests, key))


async def _once(engine: NativeEngine, tx: Transaction, requests: Sequence[StartRequest], key: str) -> list[str]:
    workspace, now = requests[0].workspace, engine.store.now()
    body = content_hash([_body(request) for request in requests])
    known = await idempotency.answer(tx, workspace, ROUTE, key, body, now)
    if known is not None:
        return msgspec.json.decode(known, type=list[str])
    ids = await accept(engine, tx, requests)
    answer = msgspec.json.encode(ids).decode()
    await idempotency.remember(tx, IdempotencyEntry(workspace, ROUTE, key, body, answer, now))
    return ids


def _body(request: StartRequest) -> list[object]:
    version = request.version
    return [version.workflow, version.version, request.input, dict(request.vars), request.priority]
