"""Large values on their way to a node: in memory while they are needed, and no more of them at once than fit."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.brief import is_brief
from ropewalk.core.errors import Unfinished
from ropewalk.core.events import Blob
from ropewalk.core.execution.view import (
    Later,
    TooMuch,
    inputs_briefly,
    inputs_later,
    items_briefly,
    items_later,
    output_later,
)
from ropewalk.core.execution.work import Work
from ropewalk.core.expression import ExpressionError
from ropewalk.core.signals import Evaluated
from ropewalk.engines.budget import Budget
from ropewalk.engines.native.evaluating import Evaluating
from ropewalk.engines.native.live import Live, Load
from ropewalk.engines.native.stored import MIB, MOST_AT_HAND, keep
from ropewalk.engines.run import Desk
from ropewalk.engines.runner import INLINE_LIMIT
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.recording import kept_apart, output_apart
from ropewalk.nodes.values import LARGEST_OUTPUT
from ropewalk.store.blobs import BlobTooLarge

AT_ONCE: Final = 512 * MIB
"""How much of large values the nodes that run at the same time are given together."""
Evaluate = Callable[[Later], Awaitable[Any]]


class LargeValues:
    """Loads what expressions look at, and keeps what a node is given if it is too large for the log."""

    def __init__(self, load: Load, desk: Desk, evaluating: Evaluating) -> None:
        self._load = load
        self._desk = desk
        self._evaluating = evaluating
        self._room = Budget(AT_ONCE)

    @asynccontextmanager
    async def inputs(self, live: Live, work: Work, evaluate: Evaluate) -> AsyncIterator[Any]:
        """What an attempt is given; there is room for it until the end.

        `evaluate` is asked for what takes long.
        """
        item = None if work.item is None else (await self.items(live, work.node))[work.item]
        async with self._loaded(live.blobs_for(work)) as values:
            with live.at_hand(values):
                inputs = _begun(partial(inputs_briefly, live.execution, work, item),
                                partial(inputs_later, live.execution, work, item))  # fmt: skip
            if isinstance(inputs, _Later):
                inputs = await evaluate(inputs.later)
            yield inputs

    async def items(self, live: Live, node: int) -> Any:
        """What a map's `forEach` evaluates to; a list is evaluated once while the execution is in memory."""
        if (items := live.items.get(node)) is not None:
            return items
        async with self._loaded(live.blobs_of(live.execution.plan.for_each[node])) as values:
            with live.at_hand(values):
                found = _begun(partial(items_briefly, live.execution, node), partial(items_later, live.execution, node))
            if isinstance(found, _Later):
                found = await self._evaluating.beside(live, found.later)
        if isinstance(found, list):
            live.keep_items(node, found)
        return found

    async def output(self, live: Live, seq: int) -> Evaluated:
        """The execution's output, as it is after so many events; one that is too large for the log is kept elsewhere.

        Unavailable if the store does not take it now, or does not give what it is made of.
        """
        blobs = live.blobs_of_output()
        most = LARGEST_OUTPUT if live.execution.plan.output is None else MOST_AT_HAND
        if sum(blob.size for blob in blobs) > most:
            return Evaluated(seq, error=f"the large values it is made of are more than {most // MIB} MiB together")
        try:
            async with self._loaded(blobs) as values:
                with live.at_hand(values):
                    later = output_later(live.execution)
                output, large = await self._evaluating.beside(live, lambda: output_apart(later(), INLINE_LIMIT))
            blob = None if large is None else await keep(live, large, self._desk)
        except (ExpressionError, TooMuch, NodeFailure, BlobTooLarge) as error:
            return Evaluated(seq, error=str(error))
        return Evaluated(seq, output, blob=blob)

    @asynccontextmanager
    async def _loaded(self, blobs: Sequence[Blob]) -> AsyncIterator[dict[str, Any]]:
        size = sum(blob.size for blob in blobs)
        if size > MOST_AT_HAND:
            raise TooMuch(
                f"its expressions look at {size // MIB} MiB of large values, at most {MOST_AT_HAND // MIB} MiB are "
                "loaded together; look at fewer of them"
            )
        async with self._room.room_for(size):
            yield {blob.hash: await self._load(blob) for blob in blobs}

    async def kept(self, live: Live, work: Work, inputs: Any) -> Blob | None:
        """Where inputs lie that are too large for the log; None if they are not."""
        if isinstance(work.inputs, Blob):
            return work.inputs
        if is_brief(inputs):
            return None
        large = await self._evaluating.beside(live, partial(kept_apart, inputs, INLINE_LIMIT))
        return None if large is None else await keep(live, large, self._desk)


class _Later(Struct, frozen=True):
    """An evaluation that takes long; what it looks at is in it already."""

    later: Later


def _begun(briefly: Callable[[], Any], later: Callable[[], Later]) -> Any:
    """The value, or a `_Later` that gives it: made in the same turn, while large values are at hand."""
    try:
        return briefly()
    except Unfinished:
        return _Later(later())
