"""A run of somebody else's execution: what its runner is told, and has in hand."""

import asyncio
from typing import Any

import msgspec

from ropewalk.core.events import Blob
from ropewalk.core.signals import Returned
from ropewalk.core.waits import RateLimitWait
from ropewalk.engines.runner import Outcome, Run
from ropewalk.store.events import item_of
from ropewalk.store.offers import Offer


class Offered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an offer tells the runner that takes it."""

    type: str
    inputs: Any
    timeout: int
    config_hash: str
    held_since: int | None = None
    cache_ttl: int | None = None
    run: str | None = None
    trace: str | None = None
    inputs_blob: Blob | None = None
    bounded_by: tuple[str, ...] = ()
    rate_limit: str | None = None
    reserved: RateLimitWait | None = None


class LeasedRun(Run, eq=False):
    """A run of somebody else's execution that is carried out here."""

    config: str
    bounds: tuple[str, ...] = ()
    slots: RateLimitWait | None = None

    def reserved(self) -> RateLimitWait | None:
        return self.slots

    def config_hash(self) -> str:
        return self.config

    def bounded_by(self) -> tuple[str, ...]:
        return self.bounds


class InHand(msgspec.Struct, eq=False):
    """A leased run that is carried out here, and the task that tells how it ended: in time, whatever its node does."""

    offer: Offer
    attempt: asyncio.Task[Outcome]
    telling: asyncio.Task[None] | None = None

    def returned(self) -> Returned:
        return Returned(self.offer.node, self.offer.attempt, item_of(self.offer.item))
