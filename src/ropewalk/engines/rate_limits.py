"""Rate limits, exact across all workers: slots are handed out in the store, one after the other, and each is used once.

An attempt takes its slot in a transaction that locks the limit; attempts that come together share one transaction, and
those without a limit cost nothing. A slot that is soon is waited for here. For a later one the attempt waits as for a
timer, holds its slot meanwhile, and is back shortly before. A worker that dies takes its slots with it: they stay
unused, and no call is made too many.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.duration import MILLISECOND, SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.core.rate_limit import LATEST, RateLimit, Slots, Turn, Wanted, next_turn
from ropewalk.core.waits import RateLimitWait
from ropewalk.store import rate_limits
from ropewalk.store.access import Store, Transaction
from ropewalk.store.rate_limits import EVERYWHERE

KNOWN_FOR: Final = 1 * SECOND
LEAD: Final = 250 * MILLISECOND
LONGEST_LEAD: Final = 10 * SECOND
"""So long before its slot an attempt is back from its wait; longer, where waking takes longer than that."""
STORE_AWAY: Final = 1 * SECOND
UNKNOWN_PAUSE: Final = 30 * SECOND
MOST_TOGETHER: Final = 500

_log = logging.getLogger("ropewalk.engine")


class Named(Struct, frozen=True):
    """A limit where it is said: in the configuration, or of a workspace."""

    workspace: str
    name: str
    rate: RateLimit

    @property
    def key(self) -> tuple[str, str]:
        return self.workspace, self.name


class Ask(Struct, eq=False):
    """An attempt that wants its turn; the answer comes when its slots are durable."""

    limits: Sequence[Named]
    reserved: RateLimitWait | None
    answer: "asyncio.Future[Turn]"

    def held(self, limit: Named) -> int | None:
        """The slot that the attempt has of this limit already."""
        held = self.reserved
        return held.slot if held is not None and limit.name in held.held else None


class RateLimits:
    """Which limits a call has to keep, and when its turn is."""

    def __init__(self, store: Store, configured: Mapping[str, RateLimit]) -> None:
        self._store = store
        self._configured = {name: Named(EVERYWHERE, name, rate) for name, rate in configured.items()}
        self._of_workspaces: dict[str, dict[str, Named]] = {}
        self._known_at = 0
        self._lead = LEAD
        self._asks: list[Ask] = []
        self._serving: asyncio.Task[None] | None = None
        self._missed: dict[str, None] = {}

    async def load(self) -> None:
        """Take over what the store knows of the limits of workspaces."""
        found = await rate_limits.of_workspaces(self._store)
        self._of_workspaces = {
            workspace: {name: Named(workspace, name, rate) for name, rate in limits.items()}
            for workspace, limits in found.items()
        }
        self._known_at = self._store.now()

    async def look_again(self) -> None:
        """They may have changed; a store that cannot be asked now is asked by the next attempt that needs one."""
        with suppress(RopewalkError):
            await self.load()

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)

    def known(self, workspace: str) -> dict[str, Named]:
        """The limits that nodes of a workspace may name; its own stands in the place of a configured one."""
        return {**self._configured, **self._of_workspaces.get(workspace, {})}

    def now(self) -> int:
        return self._store.now()

    async def turn(self, workspace: str, name: str | None, target: str | None, reserved: RateLimitWait | None
                   ) -> int | RateLimitWait | None:  # fmt: skip
        """None: nothing limits the call. A slot is soon, and the caller waits for it; for a later one it is parked.

        A limit that is not known, and a store that cannot be asked, let no call through.
        """
        limits = await self._limits(workspace, name, target)
        if limits is None:
            return RateLimitWait(self._miss(name), self.now() + UNKNOWN_PAUSE)
        if not limits:
            return None
        try:
            return await self._turn(limits, reserved)
        except RopewalkError as error:
            _log.warning("slots of the rate limit %s cannot be had now: %s", limits[0].name, error)
            return RateLimitWait(limits[0].name, self.now() + STORE_AWAY)

    async def _limits(self, workspace: str, name: str | None, target: str | None) -> list[Named] | None:
        """The limits of the call: the one its node names, and those of its host; None if the first is not known."""
        if self._store.is_shared and self._store.now() - self._known_at > KNOWN_FOR:
            await self.look_again()
        own = self._of_workspaces.get(workspace)
        if own is None and not self._configured:
            return None if name is not None else []
        known = self._configured if own is None else {**self._configured, **own}
        if name is not None and name not in known:
            return None
        return [
            each
            for each in known.values()
            if each.name == name or (target is not None and each.rate.hosts and each.rate.holds_for(target))
        ]

    def _miss(self, name: str | None) -> str:
        assert name is not None, "only a name can be missing"
        if name not in self._missed:
            self._missed[name] = None
            _log.warning("there is no rate limit %r here; runs that name it wait until there is", name)
        return name

    # Turns

    async def _turn(self, limits: list[Named], reserved: RateLimitWait | None) -> int | RateLimitWait:
        if reserved is not None and reserved.slot is not None and len(reserved.held) == len(limits):
            if self.now() <= reserved.slot + LATEST:
                self._lead = max(LEAD, self._lead - self._lead // 16)
                return reserved.slot
            self._lead = min(LONGEST_LEAD, 2 * self._lead)  # the slot was missed: be back earlier
        turn = await self._asked(limits, reserved)
        if turn.is_complete and turn.at - self.now() <= self._lead:
            return turn.at
        held = tuple(limit.name for limit, is_held in zip(limits, turn.is_held, strict=True) if is_held)
        return RateLimitWait(limits[turn.decisive].name, turn.at - self._lead, turn.at, held)

    async def _asked(self, limits: Sequence[Named], reserved: RateLimitWait | None) -> Turn:
        ask = Ask(limits, reserved, asyncio.get_running_loop().create_future())
        self._asks.append(ask)
        if self._serving is None:
            self._serving = asyncio.get_running_loop().create_task(self._serve())
        return await ask.answer

    async def _serve(self) -> None:
        """Answer everything that was asked meanwhile, in one transaction after the other."""
        try:
            while self._asks:
                asks, self._asks = self._asks[:MOST_TOGETHER], self._asks[MOST_TOGETHER:]
                try:
                    turns = await self._decided([ask for ask in asks if not ask.answer.done()])
                except Exception as error:  # noqa: BLE001 -- each of them hears of it
                    _refuse(asks, error)
                else:
                    for ask, turn in turns:
                        if not ask.answer.done():
                            ask.answer.set_result(turn)
        finally:
            self._serving = None
            _refuse(self._asks, asyncio.CancelledError())

    async def _decided(self, asks: list[Ask]) -> list[tuple[Ask, Turn]]:
        limits = {limit.key: limit for ask in asks for limit in ask.limits}
        turns: list[tuple[Ask, Turn]] = []
        async with self._store.transaction() as tx:
            before = await _locked(tx, limits)
            taken, now = dict(before), self._store.now()
            for ask in asks:
                wanted = [Wanted(limit.rate, taken[limit.key], ask.held(limit)) for limit in ask.limits]
                turn = next_turn(wanted, now, self._lead)
                taken |= {limit.key: slots for limit, slots in zip(ask.limits, turn.taken, strict=True)}
                turns.append((ask, turn))
            for key, slots in taken.items():
                if slots != before[key]:
                    await rate_limits.hand_out(tx, *key, limits[key].rate, slots)
        return turns


async def _locked(tx: Transaction, limits: Mapping[tuple[str, str], Named]) -> dict[tuple[str, str], Slots]:
    # In one order, so that two workers never wait for each other.
    return {key: await rate_limits.lock(tx, *key, limits[key].rate) for key in sorted(limits)}


def _refuse(asks: Sequence[Ask], error: BaseException) -> None:
    for ask in asks:
        if not ask.answer.done():
            answer: Any = ask.answer
            answer.cancel() if isinstance(error, asyncio.CancelledError) else answer.set_exception(error)
