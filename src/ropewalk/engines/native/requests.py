"""What executions are asked for and told: by callers, by people, by each other."""

from ropewalk.engines.background import Background
from ropewalk.engines.base import Reaches
from ropewalk.engines.computing import Computing
from ropewalk.engines.native.children import Children
from ropewalk.engines.native.letters import Letters
from ropewalk.engines.native.losing import Losing
from ropewalk.engines.native.owning import Owning
from ropewalk.engines.native.runs import Runs
from ropewalk.engines.native.slot_limits import SlotLimits
from ropewalk.engines.native.starting import Starting
from ropewalk.engines.native.telling import Telling
from ropewalk.engines.settings import WorkerSettings
from ropewalk.engines.versions import Versions
from ropewalk.store.access import Store


class Requests:
    """Starts, verbs and letters."""

    def __init__(self, store: Store, settings: WorkerSettings, background: Background, computing: Computing,
                 versions: Versions, reaches: Reaches, owning: Owning, runs: Runs) -> None:  # fmt: skip
        owned = (owning.memory, owning.commit, runs.deciding)
        self.limits = SlotLimits(store, background)
        self.starting = Starting(store, settings, background, *owned, self.limits)
        self.telling = Telling(store, *owned, runs.desk)
        self.losing = Losing(store, *owned)
        children = Children(store, versions, computing, reaches, owning.commit, self.telling, self.starting)
        self.letters = Letters(store, background, *owned, self.telling, self.losing, children)
