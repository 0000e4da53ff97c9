"""Consumes the streams of queue triggers: each message starts one execution, and is acknowledged after that.

Any number of servers consume the same stream together, by one durable consumer. A message whose acknowledgement was
lost is delivered again and known by its key, so it starts nothing twice; one that a dead server had is delivered to
another.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ropewalk.core.canonical import writable
from ropewalk.core.duration import SECOND, parse_duration
from ropewalk.core.errors import Conflict, RopewalkError, Unavailable
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.network import Guard
from ropewalk.service import Service
from ropewalk.service.triggers.backlog import MOST_WAITING
from ropewalk.service.triggers.firing import Fired, Firing, Reason, settings_of
from ropewalk.store import triggers
from ropewalk.store.triggers import Trigger
from ropewalk.triggers.jetstream import Broken, Subscription, Wanted, subscribed
from ropewalk.triggers.messages import Unusable, event_of, key_of, place_of

if TYPE_CHECKING:
    from nats.aio.msg import Msg

LOOK: Final = 1.0
"""How often (s) a server looks which queues there are."""
SHORTEST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
FETCH: Final = 5.0
"""How long (s) one pull waits for messages."""
AT_ONCE: Final = 64
DEFAULT_PENDING: Final = 100
DEFAULT_DELIVERIES: Final = 5
DEFAULT_ACK_WAIT: Final = 30 * SECOND
FULL: Final = 1.0
"""How often (s) it is looked whether the backlog is short enough again."""
POSTPONED: Final = 5.0
"""After how long (s) a message comes again for which there was no place, or no store."""

_log = logging.getLogger("ropewalk.triggers")


class Queues:
    """One consumer for each queue trigger that is enabled."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running: dict[str, tuple[Trigger, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Consume what is to be consumed, for ever."""
        try:
            while True:
                await self._step()
                await asyncio.sleep(LOOK)
        finally:
            await self._stop(list(self._running))

    async def _step(self) -> None:
        try:
            await self.look()
        except RopewalkError as error:
            _log.warning("queues cannot be looked at for now: %s", error)

    async def look(self) -> None:
        """Consumers of what is new begin, those of what is gone end, those of what was changed begin anew."""
        wanted = {each.id: each for each in await triggers.queues(self._service.store)}
        await self._stop([key for key, known in self._running.items() if not _is_same(known, wanted.get(key))])
        for key, trigger in wanted.items():
            if key not in self._running:
                task = asyncio.get_running_loop().create_task(Consumer(self._service, trigger).run())
                self._running[key] = (trigger, task)

    async def _stop(self, keys: list[str]) -> None:
        stopped = [self._running.pop(key)[1] for key in keys]
        for task in stopped:
            task.cancel()
        await asyncio.gather(*stopped, return_exceptions=True)
        for key in keys:
            self._service.queue_troubles.pop(key, None)


def _is_same(known: tuple[Trigger, asyncio.Task[None]], trigger: Trigger | None) -> bool:
    before, task = known
    if trigger is None or task.done():
        return False
    return (before.settings, before.bounded_by) == (trigger.settings, trigger.bounded_by)


class Consumer:
    """Consumes the queue of one trigger, and connects again where it has to."""

    def __init__(self, service: Service, trigger: Trigger) -> None:
        self._service = service
        self._store = service.store
        self._firing = Firing(service)
        self._trigger = trigger
        self._settings = settings_of(trigger)
        self._wanted = wanted_of(trigger)
        self._has_consumed = False
        # How often each message failed here, by its number in the stream.
        self._failures: dict[int, int] = {}

    async def run(self) -> None:
        """Consume, for ever; after what goes wrong again, after 1 to 60 seconds."""
        pause = SHORTEST_PAUSE
        while True:
            self._has_consumed = False
            try:
                await self._consume()
            except (Broken, NodeFailure, RopewalkError) as error:
                self._tell(str(error))
            except Exception:  # noqa: BLE001 -- a fault of ours about one queue keeps no other from being consumed
                _log.exception("trigger %s of workflow %s failed", self._trigger.id, self._trigger.workflow)
                self._tell("an error of the server, which its log tells")
            _require_not_cancelled()
            pause = SHORTEST_PAUSE if self._has_consumed else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _consume(self) -> None:
        """Consume until something is wrong, or the trigger is switched off."""
        guard, credential = await self._way()
        async with subscribed(guard, credential, self._wanted) as subscription:
            while True:
                if await self._service.backlog.is_full(self._trigger.workspace):
                    self._tell(f"{MOST_WAITING:,} executions wait in the workspace already")
                    await asyncio.sleep(FULL)
                    continue
                messages = await subscription.fetch(min(AT_ONCE, self._wanted.pending), FETCH)
                self._well()
                if messages and not await self._take(subscription, messages):
                    return

    async def _way(self) -> tuple[Guard, Credential]:
        """What lets it reach the queue."""
        credentials, facilities = self._service.stored_credentials, self._service.facilities
        name, trigger = self._settings.get("credential"), self._trigger
        if name is None or credentials is None or facilities is None:
            raise Broken("it names no credential of type nats, which says where the stream is")
        if trigger.bounded_by is not None:
            await credentials.require(trigger.workspace, name, [trigger.bounded_by])
        found = await credentials.get(trigger.workspace, name)
        if found.type != "nats":
            raise Broken(f"the credential {name!r} is of type {found.type}, not nats")
        return facilities.guard, found

    # Messages

    async def _take(self, subscription: Subscription, messages: "list[Msg]") -> bool:
        """Start what these ask for, if the trigger still does; whether it does."""
        trigger = await triggers.get(self._store, self._trigger.workspace, self._trigger.id)
        if trigger is None or trigger.removed_at is not None or not trigger.is_enabled:
            await asyncio.gather(*[subscription.postpone(each, 0) for each in messages])
            return False
        failed = await asyncio.gather(*[self._settle(subscription, trigger, each) for each in messages])
        if away := next((each for each in failed if each is not None), None):
            raise away
        return True

    async def _settle(self, subscription: Subscription, trigger: Trigger, message: "Msg") -> RopewalkError | None:
        """Start what the message asks for, and say so to the stream; the error, if there is no place or no store."""
        try:
            fired = await self._fire(trigger, message)
        except (Unavailable, Conflict) as error:
            await subscription.postpone(message, POSTPONED)
            return error
        except Exception as error:  # noqa: BLE001 -- one message that fails, however, keeps no other from being taken
            return await self._failed(subscription, trigger, message, error)
        self._failures.pop(message.metadata.sequence.stream, None)
        if fired.reason == Reason.INVALID:
            await subscription.give_up(message)
        else:
            await subscription.acknowledge(message)
        return None

    async def _fire(self, trigger: Trigger, message: "Msg") -> Fired:
        place = place_of(message)
        try:
            event = event_of(message, self._store.now())
            key = key_of(self._settings, event, place)
        except Unusable as error:
            return await self._firing.skip(trigger, place, Reason.INVALID, str(error))
        return await self._firing.fire(trigger, key, event)

    async def _failed(
        self, subscription: Subscription, trigger: Trigger, message: "Msg", error: Exception
    ) -> RopewalkError | None:
        number = message.metadata.sequence.stream
        count = self._failures[number] = self._failures.get(number, 0) + 1
        about = f"{type(error).__name__}: {error}"
        _log.warning("trigger %s: message %s failed for the %d. time: %s", trigger.name, number, count, about)
        if count < self._settings.get("maxDeliveries", DEFAULT_DELIVERIES):
            await subscription.postpone(message, min(2.0 ** (count - 1), LONGEST_PAUSE))
            return None
        try:
            await self._firing.skip(trigger, place_of(message), Reason.POISON, writable(about))
        except RopewalkError as away:
            await subscription.postpone(message, POSTPONED)
            return away
        del self._failures[number]
        await subscription.give_up(message)
        return None

    # How it goes

    def _tell(self, trouble: str) -> None:
        """What is wrong is said once, and explained as long as it is wrong."""
        known = self._service.queue_troubles
        if known.get(self._trigger.id) != trouble:
            known[self._trigger.id] = trouble
            _log.warning("trigger %s of workflow %s takes no messages for now: %s",
                         self._trigger.name, self._trigger.workflow, trouble)  # fmt: skip

    def _well(self) -> None:
        self._has_consumed = True
        if self._service.queue_troubles.pop(self._trigger.id, None) is not None:
            _log.info("trigger %s of workflow %s takes messages again", self._trigger.name, self._trigger.workflow)


def wanted_of(trigger: Trigger) -> Wanted:
    """The consumer that a trigger asks for; one of its own is named by its id."""
    settings = settings_of(trigger)
    wait = parse_duration(settings["ackWait"]) if "ackWait" in settings else DEFAULT_ACK_WAIT
    return Wanted(
        stream=settings["queue"],
        consumer=settings.get("consumer") or f"ropewalk-{trigger.id}",
        is_own="consumer" not in settings,
        subject=settings.get("subject"),
        pending=settings.get("maxPending", DEFAULT_PENDING),
        ack_wait=wait / SECOND,
    )


def _require_not_cancelled() -> None:
    """The client library takes the end of a task that waits for it for the end of its connection."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
