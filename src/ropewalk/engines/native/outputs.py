"""Outputs of executions that take long to evaluate: beside everything else, and then reported like a run."""

from ropewalk.engines.background import Background
from ropewalk.engines.native.deciding import GiveUp
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.reports import Reports


class Outputs:
    """Sees to it that an output is evaluated."""

    def __init__(self, background: Background, memory: Memory, hands: Hands, reports: Reports,
                 give_up: GiveUp) -> None:  # fmt: skip
        self._background = background
        self._memory = memory
        self._hands = hands
        self._reports = reports
        self._give_up = give_up

    def evaluate(self, live: Live, seq: int) -> None:
        """The output of the execution as it is after so many events is wanted."""
        self._background.spawn(self._evaluate(live, seq))

    async def _evaluate(self, live: Live, seq: int) -> None:
        try:
            evaluated = await self._hands.large.output(live, seq)
        except Exception as error:  # noqa: BLE001 -- the execution is taken up again, and evaluates it once more
            if self._memory.owns(live):
                self._give_up([live], error)
            return
        if self._memory.owns(live):
            self._reports.add(live, evaluated)
