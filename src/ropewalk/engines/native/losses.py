"""What goes on after a loss: of a process, ours or another's, of a commit, of the lease."""

from collections.abc import Callable

from ropewalk.engines.background import Background
from ropewalk.engines.native.dispatch import Dispatch
from ropewalk.engines.native.owning import Owning
from ropewalk.engines.native.recovery import Recovery
from ropewalk.engines.native.rejoining import Rejoining
from ropewalk.engines.native.requests import Requests
from ropewalk.engines.native.runs import Runs
from ropewalk.engines.native.setbacks import Setbacks
from ropewalk.engines.native.takeover import Takeover
from ropewalk.engines.settings import WorkerSettings
from ropewalk.engines.versions import Versions
from ropewalk.engines.watching import Watching
from ropewalk.store.access import Store


class Losses:
    """Takes up what was under way."""

    def __init__(self, store: Store, settings: WorkerSettings, background: Background, versions: Versions,
                 watching: Watching, changed: Callable[[], None], owning: Owning, runs: Runs, requests: Requests,
                 dispatch: Dispatch) -> None:  # fmt: skip
        memory, commit, deciding, letters = owning.memory, owning.commit, runs.deciding, requests.letters
        self.recovery = Recovery(store, owning.ownership, memory, commit, deciding, letters, dispatch.offers,
                                 dispatch.claims, owning.give_up)  # fmt: skip
        self.rejoining = Rejoining(store, background, versions, watching, memory, deciding, dispatch.claims, changed)
        self.setbacks = Setbacks(store, background, watching, memory, commit, deciding, letters, self.recovery,
                                 self.rejoining)  # fmt: skip
        self.takeover = Takeover(store, settings.executions, memory, self.recovery)
