"""Letters: what executions are told by others than their owner, kept in the inbox until they were told.

A letter is written in the commit of its cause and goes in the commit of the events it causes: told at least
once, and only by the owner of whom it is for. Its writer tries to hand it over at once; one for an execution
in other hands is for these to read. A person's request is a letter with an answer.

What a parent tells a child is told in the order it was said: a child that hears of the resumption before the pause
would stay paused for good. And it waits for a child that is yet to be started.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, repeat

import msgspec
import uuid_utils

from ropewalk.core.commands import StartChild
from ropewalk.core.errors import (
    Conflict,
    InvalidTransition,
    NotFound,
    RopewalkError,
    Unavailable,
    Unreadable,
    VersionLost,
)
from ropewalk.core.signals import BY_PARENT, Cancel, Discard, Pause, Resume, Retry, Signal
from ropewalk.engines.background import Background
from ropewalk.engines.native.children import Children
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.losing import Losing
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.ownership import OwnedElsewhere
from ropewalk.engines.native.telling import Telling
from ropewalk.store import inbox
from ropewalk.store.access import Store
from ropewalk.store.errors import StoreCorrupted
from ropewalk.store.inbox import InboxMessage
from ropewalk.store.rows import NewSignal

PAUSES = (0.05, 0.5, 1, 5, 30)
EVERY = 1.0
ANSWERS = (0.005, 0.01, 0.02, 0.05, 0.1)
LONGEST_ANSWER = 30.0

Said = Signal | StartChild | Discard
"""What letters say."""

_log = logging.getLogger("ropewalk.engine")
_signals = msgspec.json.Decoder(Said)


class Answer(msgspec.Struct, omit_defaults=True):
    """What came of a request: whether it changed anything, or why it was refused; perhaps since nothing is there."""

    changed: bool = False
    refused: str | None = None
    is_missing: bool = False
    is_conflict: bool = False

    @property
    def refusal(self) -> RopewalkError:
        """The refusal as it was raised where the execution is owned."""
        kind = NotFound if self.is_missing else Conflict if self.is_conflict else InvalidTransition
        return kind(self.refused or "")


class NotYet(Exception):
    """Its turn has not come: others are to be told first, or whom it is for is yet to begin."""


class Letters:
    """Hands letters over, reads those of others, and asks for answers."""

    def __init__(self, store: Store, background: Background, memory: Memory, commit: GroupCommit, deciding: Deciding,
                 telling: Telling, losing: Losing, children: Children) -> None:  # fmt: skip
        self._store = store
        self._background = background
        self._memory = memory
        self._commit = commit
        self._deciding = deciding
        self._telling = telling
        self._losing = losing
        self._children = children
        self._under_way: set[str] = set()
        # What cannot be read, so that it is said once.
        self._unread: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """On a shared store others write letters too: look for them."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def asked(self) -> None:
        """Someone says that there is a letter."""
        self._wake.set()

    async def _run(self) -> None:
        while True:
            try:
                await self.catch_up()
            except RopewalkError as error:
                _log.warning("the inbox cannot be read for now: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not leave letters lying
                _log.exception("reading the inbox failed; it is tried again")
            timer = asyncio.get_running_loop().call_later(EVERY, self._wake.set)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()

    async def catch_up(self) -> None:
        """Tell what was written down and may not have been told: by others, by the last process, before a failure."""
        for letter in await inbox.messages_for(self._store, self._store.worker):
            if (signal := _opened(letter.signal)) is not None:
                self._send(letter, signal)
            elif letter.id not in self._unread:
                self._unread[letter.id] = None
                _log.error("execution %s: what it was told cannot be read, and lies in the inbox", letter.execution)

    def deliver(self, post: Sequence[tuple[str, str, Said]]) -> None:
        """These are durable: tell them."""
        for letter, execution, signal in post:
            self._send(InboxMessage(letter, execution, "", None, 0), signal)

    def _send(self, letter: InboxMessage, signal: Said) -> None:
        if letter.id not in self._under_way:
            self._under_way.add(letter.id)
            self._background.spawn(self._deliver(letter, signal))

    async def _deliver(self, letter: InboxMessage, signal: Said) -> None:
        """Tell it, as soon as the store lets us; what is not told before the process ends is told by the next."""
        try:
            for pause in chain(PAUSES, repeat(PAUSES[-1])):
                try:
                    await self._hand_over(letter, signal)
                    await self._is_durable()
                    return
                except OwnedElsewhere as elsewhere:
                    self._store.hint(elsewhere.owner)
                    return
                except NotYet:
                    pause = min(pause, EVERY)
                except (Unavailable, Conflict, StoreCorrupted) as error:
                    # A conflict: another, whose it was before, has just started the same child.
                    _log.warning("execution %s cannot be told something yet: %s", letter.execution, error)
                    self._memory.suspect_strays()
                except Unreadable as error:
                    # It lies in the inbox until the store is mended.
                    _log.error("%s cannot be told: %s", type(signal).__name__, error)
                    pause = PAUSES[-1]
                except Exception:  # noqa: BLE001 -- a fault of ours must not leave a letter lying
                    _log.exception("execution %s cannot be told something; it is tried again", letter.execution)
                await asyncio.sleep(pause)
        finally:
            self._under_way.discard(letter.id)

    async def _is_durable(self) -> None:
        """Until what a letter caused is written, the letter is in the inbox and must not be told a second time."""
        with suppress(
            RopewalkError
        ):  # it was not told then: the worker that takes the execution up reads the inbox again
            await self._commit.settled()

    async def _hand_over(self, letter: InboxMessage, signal: Said) -> None:
        try:
            live = await self._addressee(letter, signal)
        except NotFound:
            await self._forget(letter, signal)
            return
        except VersionLost:
            if not isinstance(signal, Cancel) or letter.wants_answer:
                raise
            await self._losing.cancel(letter.execution, signal, signal.by, letter.id)
            return
        if live is None:
            return
        if isinstance(signal, StartChild):
            await self._start_child(letter, live, signal)
        elif letter.wants_answer or isinstance(signal, Discard):
            await self._answer(letter, signal)
        else:
            self._telling.hand_over(letter.id, live, signal)

    async def _forget(self, letter: InboxMessage, signal: Said) -> None:
        """The execution is not there; a child that is about to start is to hear it all the same."""
        # An execution that is started anew needs no retry.
        may_come = _is_verb_of_parent(signal) and not isinstance(signal, Retry)
        async with self._store.transaction() as tx:
            if may_come:
                may_come = not await inbox.forget_unless_coming(tx, letter.id, letter.execution)
            else:
                await inbox.forget(tx, letter.id)
        if may_come:
            raise NotYet

    async def _addressee(self, letter: InboxMessage, signal: Said) -> Live | None:
        """Whom it is for, in memory and ours; None if it was told already."""
        memory = self._memory
        while True:
            live = await memory.load(letter.execution)
            await live.expect(memory.values.load, signal)
            # Asked while it is ours: others, who had it before, may have read the same letter.
            waits, is_next = await self._turn(letter, signal)
            if memory.owns(live):
                if not (waits and is_next):
                    self._deciding.let_go(live)
                if waits and not is_next:
                    raise NotYet
                return live if waits else None

    async def _turn(self, letter: InboxMessage, signal: Said) -> tuple[bool, bool]:
        """Whether it has yet to be told, and nothing that its parent said before."""
        store = self._store
        if letter.wants_answer or not _is_verb_of_parent(signal):
            return not store.is_shared or await inbox.waits(store, letter.id), True
        waiting = [sent.id for sent in await inbox.of_execution(store, letter.execution)
                   if _is_verb_of_parent(_opened(sent.signal))]  # fmt: skip
        return letter.id in waiting, waiting[:1] == [letter.id]

    async def _start_child(self, letter: InboxMessage, live: Live, command: StartChild) -> None:
        """The parent stays ours meanwhile, so that no other worker starts the child as well."""
        live.pins += 1
        try:
            await self._children.start(letter.id, live, command)
        finally:
            live.pins -= 1
            self._deciding.let_go(live)

    # Requests from elsewhere, with an answer

    async def _answer(self, letter: InboxMessage, signal: Signal | Discard) -> None:
        telling = self._telling
        async with telling.turn(letter.execution, signal):
            try:
                live, above = await telling.addressees(letter.execution, signal)
                answer = Answer(changed=telling.tell(live, above, signal, letter.sent_by or "unknown"))
            except (InvalidTransition, NotFound, Conflict) as refusal:
                answer = _refused(refusal)
                live = await self._memory.load(letter.execution)
            live.rows.append(("answer_inbox", (msgspec.json.encode(answer).decode(), letter.id)))
            self._commit.add(live)
            await self._is_durable()

    async def ask(self, elsewhere: OwnedElsewhere, signal: Signal | Discard, by: str) -> bool:
        """Have the execution told by its owner; whether that changed anything. Refusals are raised."""
        store = self._store
        letter = str(uuid_utils.uuid7())
        text = msgspec.json.encode(signal).decode()
        async with store.transaction() as tx:
            await inbox.ask(tx, NewSignal(letter, elsewhere.execution, text, store.now()), by)
        store.hint(elsewhere.owner)
        answer = await self._answered(letter)
        if answer.refused is not None:
            raise answer.refusal
        return answer.changed

    async def _answered(self, letter: str) -> Answer:
        store, waited = self._store, 0.0
        for pause in chain(ANSWERS, repeat(ANSWERS[-1])):
            text = await inbox.answer(store, letter)
            if text is not None or waited > LONGEST_ANSWER:
                break
            await asyncio.sleep(pause)
            waited += pause
        async with store.transaction() as tx:
            was_told = await inbox.answer(tx, letter)
            await inbox.remove(tx, letter)
        if was_told is None:
            raise Unavailable("the worker that has the execution did not answer; nothing was done, try again")
        return msgspec.json.decode(was_told, type=Answer)


def _refused(refusal: RopewalkError) -> Answer:
    return Answer(
        refused=str(refusal), is_missing=isinstance(refusal, NotFound), is_conflict=isinstance(refusal, Conflict)
    )


def _opened(letter: str) -> Said | None:
    """What a letter says; None if that is nothing we know: its writer was newer, or the row is damaged."""
    try:
        said: Said = _signals.decode(letter)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return said


def _is_verb_of_parent(signal: Said | None) -> bool:
    return isinstance(signal, Pause | Resume | Cancel | Retry) and signal.by == BY_PARENT
