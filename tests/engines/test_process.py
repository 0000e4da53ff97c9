"""What goes wrong on the loop of a process where no task waits for it is a line in the log."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg
import pytest

from ropewalk.engines.process import and_no_longer, in_short_pauses
from tests.store.wires import a_line

Records = list[logging.LogRecord]


def carried_out(work: Callable[[], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        await work()
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(and_no_longer(all_of_it()))


def raw(records: Records) -> list[str]:
    """What would be a traceback, or more than a line."""
    return [
        each.getMessage() for each in records if each.exc_info or each.name == "asyncio" or "\n" in each.getMessage()
    ]


def test_connections_that_are_cut_while_they_are_made_are_told_in_a_line(
    database: str, caplog: pytest.LogCaptureFixture
):
    async def work() -> None:
        async with a_line(database) as (line, url):
            for turns in range(60):
                connecting = asyncio.ensure_future(asyncpg.connect(url))
                for _ in range(turns):
                    await asyncio.sleep(0)
                line.cut()
                connecting.cancel()
                with suppress(asyncio.CancelledError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    await (await connecting).close()
                gc.collect()

    carried_out(work)

    assert raw(caplog.records) == []
    assert "unexpected connection_lost() call" in caplog.text


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), asyncpg.InterfaceError("closed\nreally")])
def test_a_future_that_nobody_asks_is_told_in_a_line(error: Exception, caplog: pytest.LogCaptureFixture):
    async def work() -> None:
        asyncio.get_running_loop().create_future().set_exception(error)

    carried_out(work)

    assert raw(caplog.records) == []
    assert "a connection was cut" in caplog.text


def test_a_fault_of_ours_keeps_its_traceback_in_our_log(caplog: pytest.LogCaptureFixture):
    async def work() -> None:
        asyncio.get_running_loop().create_future().set_exception(KeyError("ours"))

    carried_out(work)

    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("ropewalk.process", "Future exception was never retrieved")
    assert record.exc_info


def test_work_that_makes_very_many_objects_is_collected_in_small_pieces_and_leaves_the_thresholds_as_they_were():
    before = gc.get_threshold()
    try:
        gc.set_threshold(150_000, 0, 1_500)
        inside = in_short_pauses(lambda: in_short_pauses(gc.get_threshold))
        after = gc.get_threshold()
        in_short_pauses(lambda: gc.set_threshold(5, 5, 5))
        changed = gc.get_threshold()
        few = in_short_pauses(gc.get_threshold)
    finally:
        gc.set_threshold(*before)

    assert inside == (20_000, 0, 1_500)
    assert after == (150_000, 0, 1_500)
    assert changed == few == (5, 5, 5)
