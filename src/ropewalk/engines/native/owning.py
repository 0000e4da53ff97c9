"""The executions that this worker owns: in its memory, and written by its commits."""

from collections.abc import Callable

from ropewalk.engines.computing import Computing
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import GiveUp
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.ownership import OneOfMany, SoleOwner
from ropewalk.engines.native.parts import Committed
from ropewalk.engines.versions import Versions
from ropewalk.store.access import Store


class Owning:
    """Memory and commits."""

    def __init__(self, store: Store, computing: Computing, versions: Versions,
                 carry_out: Callable[[list[Committed]], None], give_up: GiveUp) -> None:  # fmt: skip
        self.ownership = OneOfMany(store) if store.is_shared else SoleOwner(store)
        self.memory = Memory(store, self.ownership, computing, versions)
        self.commit = GroupCommit(store, self.memory, carry_out, give_up)
        self.give_up = give_up
