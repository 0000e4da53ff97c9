"""What goes on by itself: executions that wait are claimed or woken, and what commits ask for is carried out."""

from collections.abc import Awaitable, Callable

from ropewalk.engines.background import Background
from ropewalk.engines.native.carrying_out import CarryingOut
from ropewalk.engines.native.claims import Claims
from ropewalk.engines.native.offers import Offers
from ropewalk.engines.native.outputs import Outputs
from ropewalk.engines.native.owning import Owning
from ropewalk.engines.native.requests import Requests
from ropewalk.engines.native.runs import Runs
from ropewalk.engines.native.waking import Waking
from ropewalk.engines.publishing import Publishing
from ropewalk.engines.reporting import Deliver
from ropewalk.engines.settings import WorkerSettings
from ropewalk.engines.watching import Watching
from ropewalk.store.access import Store


class Dispatch:
    """Claims, offers, and commands."""

    def __init__(self, store: Store, settings: WorkerSettings, background: Background, watching: Watching,
                 publishing: Publishing, deliver: Deliver, find_strays: Callable[[], Awaitable[None]],
                 owning: Owning, runs: Runs, requests: Requests) -> None:  # fmt: skip
        memory, deciding, give_up = owning.memory, runs.deciding, owning.give_up
        owned = (owning.ownership, memory, owning.commit, deciding)
        waking = Waking(store, settings, background, *owned, requests.limits)
        self.claims = Claims(store, settings, *owned, requests.losing, waking, find_strays, give_up)
        self.offers = Offers(store, settings.pool, background, runs.leasing, runs.leased, memory, runs.hands,
                             runs.reports, runs.evaluating, deciding, give_up)  # fmt: skip
        outputs = Outputs(background, memory, runs.hands, runs.reports, give_up)
        self.carrying_out = CarryingOut(store, watching, publishing, runs.breakers, memory, deciding, self.claims,
                                        self.offers, outputs, deliver, give_up)  # fmt: skip
