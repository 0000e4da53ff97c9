"""Waiting for work that goes on when the wait is cancelled."""

import asyncio


async def finished(done: asyncio.Future[None]) -> None:
    """Waits for the end even when cancelled: the task that has the store's turn keeps it till then."""
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
