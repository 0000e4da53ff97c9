"""The attempts that this worker carries out, and the decisions about what they report."""

from ropewalk.engines.background import Background
from ropewalk.engines.base import Breakers
from ropewalk.engines.breakers import SharedBreakers, WorkerBreakers
from ropewalk.engines.computing import Computing
from ropewalk.engines.leased import LeasedRuns
from ropewalk.engines.leasing import Leasing
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.evaluating import Evaluating
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.owning import Owning
from ropewalk.engines.native.reports import Reports
from ropewalk.engines.native.shelf import WorkerShelf
from ropewalk.engines.publishing import Publishing
from ropewalk.engines.rate_limits import RateLimits
from ropewalk.engines.reporting import Deliver, Reporting
from ropewalk.engines.run import Desk
from ropewalk.engines.settings import WorkerSettings
from ropewalk.nodes.base import Facilities, Registry
from ropewalk.store.access import Store


class Runs:
    """Hands, what they work with, and the runs of others."""

    def __init__(self, store: Store, settings: WorkerSettings, types: Registry, facilities: Facilities,
                 background: Background, computing: Computing, publishing: Publishing, deliver: Deliver,
                 owning: Owning) -> None:  # fmt: skip
        memory, commit, policies, loosened = owning.memory, owning.commit, settings.breaker, publishing.may_go
        self.breakers: Breakers = (
            SharedBreakers(store, policies, loosened)
            if store.is_shared
            else WorkerBreakers(store, commit.add_row, policies, loosened)
        )
        self.rate_limits = RateLimits(store, settings.rate_limits)
        self.evaluating = Evaluating(computing)
        shelf = WorkerShelf(store.blobs, store, store.now, commit.add_row)
        large = (self.evaluating.of_run, settings.execution_bytes)
        self.desk = Desk(types, facilities, self.breakers, self.rate_limits, shelf, *large)
        self.reports, values = Reports(), memory.values
        self.hands = Hands(self.desk, settings.hands, store.now, values.load, self.reports.add, self.evaluating)
        reporting, lease = Reporting(store, deliver), settings.runner_lease
        self.leased = LeasedRuns(store, settings.pool, self.desk, values, reporting, background)
        self.leasing = Leasing(store, types, self.rate_limits, values, reporting, background, lease)
        self.deciding = Deciding(store, memory, commit, self.hands, self.reports, owning.give_up)
