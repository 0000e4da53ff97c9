"""The world of one seed with several workers: they come and go, stop, lose sight of the store, and die."""

import asyncio

from msgspec.structs import replace

from ropewalk.core.errors import RopewalkError
from ropewalk.engines.settings import DEFAULT_POOL, WorkerSettings
from tests.engines.simulation import runners
from tests.engines.simulation.faults import Faults
from tests.engines.simulation.member import Member, some_settings
from tests.engines.simulation.people import FLEET_VERBS
from tests.engines.simulation.process import DRAIN, WORKSPACE
from tests.engines.simulation.shared import Database
from tests.engines.simulation.workflows import OTHER_WORKSPACE, POOL, fleet_documents_of
from tests.engines.simulation.world import World

WORKSPACES = (WORKSPACE, OTHER_WORKSPACE)
LIVES = (1, 10, 60, 1000)
RATES = (0, 0.01, 0.03, 0.1)
UNTIL_TROUBLE = (0.3, 1, 3, 10)
TROUBLES = ("stopped", "stopped", "blocked", "cut off")
HOW_LONG = (0.5, 4, 16, 25, 50)


class Fleet(World):
    """Everything there is in one history of a fleet."""

    durations = (0, 0, 0, 0.001, 0.3, 2, 7, 20)
    crowds = (20, 50, 90)

    def __init__(self, seed: int, db: str) -> None:
        super().__init__(seed, db)
        self.rate = self.chance.choice(RATES)
        self.people.documents = fleet_documents_of(seed)
        if runners.COUNT:
            self.people.documents = runners.with_work_for_runners(self.people.documents, self.chance)
        self.people.verbs = FLEET_VERBS
        slots = {name: self.chance.choice((None, 1, 2, 3)) for name in WORKSPACES}
        self.limits = {name: limit for name, limit in slots.items() if limit is not None}
        self.database = Database(db, self.chance, slots, self.sometimes)
        self.members: list[Member] = []
        self._names = 0

    # People

    def _come(self) -> None:
        serving = [member for member in self.members if member.is_serving]
        if serving:
            member = self.chance.choice(serving)
            self.inspect(member)
            member.ask(self.people.do_something(member.service_of(self.chance.choice(WORKSPACES))))

    def inspect(self, member: Member) -> None:
        """What a worker has in its memory, with nothing about it to be written, is its own in the store."""
        store = member.store
        if self.database.epoch_of(store.worker) != store.epoch:
            return  # it has been taken over from and does not know yet
        for live in member.engine.memory.lives.values():
            if not (live.is_dirty or live.commits) and self.database.owner_of(live.id) != store.worker:
                self.wrong.append(f"{store.worker} has {live.id} in memory, which is not its own")

    # Workers

    async def live_through(self, seconds: float) -> None:
        """Workers come and go until the time is over; those that are there then stay."""
        end = asyncio.get_running_loop().time() + seconds
        visits = [runners.Runner(self, f"r{number}").live(seconds) for number in range(runners.COUNT)]
        pools = [DEFAULT_POOL] * self.chance.randint(1, 4) + [POOL] * (self.chance.random() < 0.5)
        await asyncio.gather(*(self._career(pool, end) for pool in pools), *visits)

    async def _career(self, pool: str, end: float) -> None:
        """One place in the fleet, which is filled again and again."""
        await asyncio.sleep(self.chance.choice((0, 0, 0.5, 20)))
        while (left := end - asyncio.get_running_loop().time()) > 0:
            member = await self.hire(some_settings(self.chance, pool))
            if member is not None:
                await self._live(member, min(left, self.chance.choice(LIVES)))
                if not member.death.is_set() and asyncio.get_running_loop().time() >= end:
                    return
                await self.let_go(member, is_violent=member.death.is_set() or self.chance.random() < 0.5)
            await asyncio.sleep(self.chance.choice((0, 0.1, 20)))

    async def hire(self, native: WorkerSettings) -> Member | None:
        """A worker that got so far as to serve, if it did."""
        self._names += 1
        name = f"w{self._names}"
        faults = Faults(self.chance, self.rate, self.sometimes, lambda: member.death.set())
        if runners.COUNT:
            native = replace(native, runner_lease=runners.LEASE)
        member = Member(self.setup, faults, native, self.database, name)
        self.members.append(member)
        if await self._unless_dies(member, member.actor.begin(member.open())):
            self.note(f"{name} serves pool {native.pool} with {native.hands} hands, claims: {native.claims}")
            return member
        self.note(f"{name} could not open")
        await self._bury(member)
        return None

    async def _unless_dies(self, member: Member, work: "asyncio.Task[None]") -> bool:
        """Whether the work was done before the worker died of it."""
        death = asyncio.get_running_loop().create_task(member.death.wait())
        await asyncio.wait((work, death), return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not work.done():
            return False
        try:
            await work
        except RopewalkError as error:
            self.note(f"refused: {error}")
            return False
        return True

    async def _live(self, member: Member, seconds: float) -> None:
        """It works for so long, and has its troubles."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not member.death.is_set() and (left := end - loop.time()) > 0:
            await self._pass(member, min(left, self.chance.choice(UNTIL_TROUBLE)))
            if self.rate and not member.death.is_set() and loop.time() < end and self.chance.random() < 0.5:
                await self._have_trouble(member)

    async def _pass(self, member: Member, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await member.death.wait()
        except TimeoutError:
            return

    async def _have_trouble(self, member: Member) -> None:
        trouble, seconds = self.chance.choice(TROUBLES), self.chance.choice(HOW_LONG)
        self.sometimes[f"{trouble} for {seconds} s"] += 1
        self.note(f"{member.name} is {trouble} for {seconds} s")
        if trouble == "cut off":
            member.cut_off()
        else:
            member.stop_for_a_while(and_heart=trouble == "stopped")
        await self._pass(member, seconds)
        member.reconnect()
        member.go_on()
        self.note(f"{member.name} goes on")

    async def let_go(self, member: Member, *, is_violent: bool) -> None:
        """The worker stops or is killed; a stop may end in a death."""
        self.note(f"{member.name} {'is killed' if is_violent else 'stops'}")
        if not is_violent:
            is_violent = not await self._unless_dies(member, member.actor.begin(member.stop()))
        self.wrong += member.broken()
        self.sometimes["killed" if is_violent else "stopped"] += 1
        await self._bury(member)

    async def _bury(self, member: Member) -> None:
        self.sometimes["stale write refused"] += member.store.stale_writes
        self.members.remove(member)
        member.death.set()
        await member.die()

    def calm(self) -> None:
        """The faults stop, for everyone who is there and all who come."""
        self.note("the faults stop")
        self.rate = 0.0
        for member in self.members:
            member.faults.calm()

    async def staff(self) -> None:
        """There is someone to claim, and someone of the pool."""
        if not any(member.native.claims for member in self.members):
            await self.hire(WorkerSettings(hands=2, drain_seconds=DRAIN))
        if not any(member.native.pool == POOL for member in self.members):
            await self.hire(WorkerSettings(claims=False, pool=POOL, hands=2, drain_seconds=DRAIN))
