"""Campaigns against a fleet under load: members killed, members stopped for longer than their lease."""

import asyncio
import random
import signal
import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from tests.fleet.fleet import Fleet, Member
from tests.fleet.load import under_load
from tests.polling import until

MEMBERS: Final = 5
EARLIEST, LATEST = 0.2, 1.6
"""How long after one kill the next comes, in seconds."""
UNBURIED: Final = MEMBERS
"""How many may lie dead with something in their hands before the next is killed. Where it takes longer to join than to
be killed there would never be one who has been there for long enough to believe another dead."""
STOPPED_AT_ONCE: Final = 10
WATCHING: Final = 2
"""How many members see the others being stopped, and take over from them."""
BAR: Final = 5.0
"""How much later than the lease the last execution of a dead member is to be in other hands, in seconds."""


class Figures(Struct):
    """What a campaign has shown, times in seconds."""

    kills: int = 0
    zombies: int = 0
    refused: int = 0
    accepted: int = 0
    takeovers: list[float] = field(default_factory=list)


Progress = Callable[[Figures], None]


class Campaign:
    """Goes on until so many members have met their fate; then everything comes to rest."""

    def __init__(self, fleet: Fleet, seed: int, progress: Progress = lambda figures: None) -> None:
        self.figures = Figures()
        self._fleet = fleet
        self._seed = seed
        self._chance = random.Random(seed)
        self._progress = progress
        self._graves = asyncio.Semaphore(UNBURIED)

    # Kills

    async def kill(self, cycles: int) -> Figures:
        """Kill one of several at random moments and replace it, so many times."""
        await self._fleet.join(MEMBERS)
        async with under_load(self._fleet, self._seed) as load, asyncio.TaskGroup() as watching:
            for _ in range(cycles):
                await asyncio.sleep(self._chance.uniform(EARLIEST, LATEST))
                await self._graves.acquire()
                victim = self._chance.choice(self._fleet.living)
                victim.signal(signal.SIGKILL)
                watching.create_task(self._watch(victim, time.monotonic()))
                self._fleet.spawn()
                self.figures.kills += 1
                self._progress(self.figures)
        return await self._finish(load.accepted)

    async def _watch(self, victim: Member, died: float) -> None:
        """How long it took until nothing was left in dead hands; nothing to tell if they were empty."""
        if await self._fleet.owned_by(victim.names):
            await self._gone(victim)
            self.figures.takeovers.append(time.monotonic() - died)
        # Empty hands may be noticed before the death is, and a member that dies is not to be asked to leave.
        await victim.ended()
        self._graves.release()

    async def _gone(self, victim: Member) -> None:
        async def is_gone() -> bool:
            return not await self._fleet.owned_by(victim.names)

        await until(is_gone, f"what {victim.names} had is in other hands")

    # Zombies

    async def stop(self, zombies: int) -> Figures:
        """Stop several at once for longer than their lease, until others have what was theirs; let them go on."""
        members = await self._fleet.join(STOPPED_AT_ONCE + WATCHING)
        async with under_load(self._fleet, self._seed) as load:
            while self.figures.zombies < zombies:
                stopped = await self._busy(members, min(STOPPED_AT_ONCE, zombies - self.figures.zombies))
                self.figures.zombies += await self._bury_alive(stopped)
                self._progress(self.figures)
        return await self._finish(load.accepted)

    async def _busy(self, members: Sequence[Member], count: int) -> list[Member]:
        """Stop so many while they have something in hand, which is certain only once they are stopped."""
        stopped: list[Member] = []

        async def are_enough() -> bool:
            free = [member for member in members if member not in stopped]
            member = self._chance.choice(free)
            member.signal(signal.SIGSTOP)
            if await self._fleet.owned_by(member.names[-1:]):
                stopped.append(member)
            else:
                member.signal(signal.SIGCONT)
            return len(stopped) == count

        await until(are_enough, f"{count} members are at work")
        return stopped

    async def _bury_alive(self, stopped: Sequence[Member]) -> int:
        """How many were taken over from: not what ended in a commit that was on its way when they stopped."""
        began, before = time.monotonic(), {member: len(member.names) for member in stopped}
        for member in stopped:
            await self._gone(member)
            self.figures.takeovers.append(time.monotonic() - began)
        dead = [member for member in stopped if self._is_believed_dead(member)]
        for member in stopped:
            member.signal(signal.SIGCONT)
        for member in dead:
            await member.back(before[member])
        return len(dead)

    def _is_believed_dead(self, member: Member) -> bool:
        told = f"worker {member.names[-1]} is dead"
        return any(told in other.said for other in self._fleet.members)

    # The end

    async def _finish(self, accepted: int) -> Figures:
        await self._fleet.quiet()
        await self._fleet.dismiss()
        self.figures.accepted = accepted
        self.figures.refused = sum(member.refused for member in self._fleet.members)
        return self.figures
