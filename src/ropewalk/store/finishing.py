"""Waiting for what goes on though nobody waits for it."""

import asyncio


async def finished(done: asyncio.Future[None]) -> None:
    """Waits for its end even when cancelled: whoever has the turn keeps it till then."""
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait((done,))
        except asyncio.CancelledError as error:
            cancelled = error
    failure = None if done.cancelled() else done.exception()
    if cancelled is not None:
        raise cancelled from failure
    if failure is not None:
        raise failure
