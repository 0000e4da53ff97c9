"""What a kill −9 in the middle costs.

On an embedded store the process is started again at once: the time to the end with the kill, less the time without it.
So the figure holds everything a user waits for: the interpreter, its imports, the recovery of the store, the folding of
the log and the second attempt at the node that was under way.

On a shared store another worker, idle until then, goes on: from when the node began that has to be done again until it
begins again. `takeover_seconds` is counted from the kill.
"""

import time
from contextlib import ExitStack

from ropewalk.bench.contenders import NATIVE
from ropewalk.bench.figures import Round
from ropewalk.bench.processes import Child, started
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.stores import SQLITE, Stores
from ropewalk.bench.victim import NAP_SECONDS


def killed(length: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    """Rounds of a chain whose process is killed halfway."""
    measure = _restarted if stores.name == SQLITE else _taken_over
    return {NATIVE: [measure(length, stores) for _ in turns(rounds, seconds)]}


# Embedded: started again at once


def _restarted(length: int, stores: Stores) -> Round:
    with stores.fresh() as undisturbed, stores.fresh() as disturbed:
        return {"seconds_lost": -_undisturbed(undisturbed, length) + _disturbed(disturbed, length)}


def _undisturbed(db: str, length: int) -> float:
    with started("victim", db, str(length)) as victim:
        return -victim.when("requested") + victim.when("ended")


def _disturbed(db: str, length: int) -> float:
    with ExitStack() as stack:
        victim = stack.enter_context(started("victim", db, str(length)))
        words = victim.words("requested")
        _kill_halfway(victim, length)
        heir = stack.enter_context(started("victim", db, str(length), words[1]))
        return heir.when("ended") - float(words[-1])


# Shared: taken over by another


def _taken_over(length: int, stores: Stores) -> Round:
    with stores.fresh() as db, started("victim", db, str(length), "idle") as heir:
        heir.words("idle")
        with started("victim", db, str(length)) as victim:
            began_at = _kill_halfway(victim, length)
            killed_at = time.monotonic()
        again_at = heir.when("nap")
    return {"seconds_lost": again_at - began_at, "takeover_seconds": again_at - killed_at}


def _kill_halfway(victim: Child, length: int) -> float:
    """When the node began that was under way."""
    for _ in range(length // 2):
        began_at = victim.when("nap")
    # In the middle of a node: half of its work is done, and lost.
    time.sleep(NAP_SECONDS / 2)
    victim.kill()
    return began_at
