"""Ends executions whose version is lost: they cannot go on, and no other execution is to be kept by them for good."""

from functools import partial

from ropewalk.core.errors import Unavailable
from ropewalk.core.signals import Abandon, Cancel
from ropewalk.core.skeleton import last_words
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.store import offers
from ropewalk.store.access import Store


class Losing:
    """Lets what is left of an execution end."""

    def __init__(self, store: Store, memory: Memory, commit: GroupCommit, deciding: Deciding) -> None:
        self._store = store
        self._memory = memory
        self._commit = commit
        self._deciding = deciding

    async def abandon(self, execution: str, reason: str) -> None:
        """End one of ours that has not begun, and never can."""
        end = partial(self._deciding.signal, signal=Abandon(reason))
        await self._memory.end_without_plan(execution, end, is_ours=True)

    async def cancel(self, execution: str, request: Cancel, by: str, letter: str | None = None) -> bool:
        """Cancel it, at once: what it had under way is dropped. Durable when it returns; whether it changed anything.

        One that was ending ends as it was about to. `letter` asked for it, and is gone from the inbox with the same
        commit.
        """
        shared = await offers.of_executions(self._store, [execution])
        has_changed = False

        def end(live: Live) -> None:
            nonlocal has_changed
            live.offered |= shared.get(execution, set())
            if live.execution.ending is None:
                self._deciding.signal(live, request)
            for word in last_words(live.execution):
                self._deciding.signal(live, word)
            has_changed = bool(live.events)
            if has_changed:
                live.audit(by, "cancel", self._store.now())
            if letter is not None:
                live.rows.append(("delete_inbox", (letter,)))
                self._commit.add(live)

        live = await self._memory.end_without_plan(execution, end)
        await self._commit.settled()
        if live.is_dropped:
            raise Unavailable("the store could not be written; nothing was done, try again")
        return has_changed
