"""Channels: a crowd is served in rounds, and what holds one round up holds up no reader after it."""

import asyncio
import time

from ropewalk.core.events import SlotReleased
from ropewalk.service.channels import Channel, Message

STALL = 0.2


class Bare(Channel):
    """A channel of nothing in particular."""

    async def open(self) -> None:
        return

    async def snapshot(self) -> tuple[int, str, bytes]:
        return 0, "0", b"{}"


async def test_a_round_that_was_held_up_is_not_followed_by_a_long_silence():
    channel, loop = Bare(), asyncio.get_running_loop()
    channel.readers = 1

    async def read_slowly() -> None:
        await channel.news()
        time.sleep(STALL)  # it is the loop itself that is held up

    reading = asyncio.ensure_future(read_slowly())
    await asyncio.sleep(0)
    channel.put(Message("e", 1, SlotReleased(1)))
    await reading
    began = loop.time()
    channel.put(Message("e", 2, SlotReleased(2)))
    await channel.news()

    assert loop.time() - began < STALL / 2
