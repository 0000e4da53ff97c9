"""Who holds an execution, for an engine whose workers own executions by their rows among the living."""

from collections.abc import Iterator, Sequence

from ropewalk.engines.base import Custody, Holding
from ropewalk.store import auditing, suspicion
from ropewalk.store.access import Reader
from ropewalk.store.auditing import Kept
from ropewalk.store.rows import LiveRow
from ropewalk.store.suspicion import SET_ASIDE


class StoredCustody:
    """The row of an execution that is not over says which worker holds it; nothing else is kept of it elsewhere."""

    async def holding(self, reader: Reader, live: LiveRow) -> Holding:
        if live.owner != SET_ASIDE:
            return Holding(live.owner)
        return Holding(live.owner, True, *await suspicion.deaths(reader, live.execution))

    def faults(self, kept: Kept, *, at_rest: bool) -> Iterator[str]:
        assert kept.live is not None, "asked of the living"
        owner, has_slot = kept.live.owner, bool(kept.live.has_slot)
        if has_slot and owner is None:
            yield "live: it has a slot and no owner"
        if has_slot and kept.live.fence < 1:
            yield "live: it has an owner and no fence"
        if at_rest and not has_slot and owner is not None:
            yield f"live: it has no slot, and {owner} holds it"

    async def strangers(self, reader: Reader, most: int) -> list[tuple[str, str]]:
        return await auditing.strange_owners(reader, most)

    async def forget(self, executions: Sequence[str]) -> None:
        """Their rows were all there was."""


STORED: Custody = StoredCustody()
