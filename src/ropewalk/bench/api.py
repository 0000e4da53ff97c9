"""How fast the API is: starts that are durable when they are answered, beside a FastAPI route that stores nothing.

Each server and the one who asks are processes of their own; engine and floor take turns.
"""

from typing import Final

import msgspec

from ropewalk.bench.contenders import FLOOR, NATIVE
from ropewalk.bench.figures import Round, percentile
from ropewalk.bench.processes import Child, started
from ropewalk.bench.queueing import PER_SECOND
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.stores import Stores

CLIENTS: Final = 16
WARM_UP: Final = 0.2
"""The part of a rush that is run before it and not counted."""


def starts(paced: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    """Rounds of so many starts at a steady pace, and of a rush of 16 clients that takes as long."""
    measured: Measured = {NATIVE: [], FLOOR: []}
    for _ in turns(rounds, seconds):
        for name, found in measured.items():
            with stores.fresh() as db:
                found.append(_round(name, db, paced))
    return measured


def _round(contender: str, db: str, paced: int) -> Round:
    with started("api_server", contender, db) as server:
        ready = server.words("ready")[1]
        with started("api_load", ready, str(CLIENTS)) as load:
            load.words("connected")
            dispatched = {} if contender == FLOOR else _dispatched(server, load, paced)
            seconds = paced / PER_SECOND
            _rushed(load, WARM_UP * seconds)
            return {"starts_per_s": _rushed(load, seconds), **dispatched}


def _rushed(load: Child, seconds: float) -> float:
    load.tell(f"rush {seconds}")
    return float(load.words("rushed")[1])


def _dispatched(server: Child, load: Child, paced: int) -> Round:
    """From the answer, as the client has it, to the first node."""
    load.tell(f"pace {PER_SECOND} {paced}")
    accepted = msgspec.json.decode(load.words("paced")[1], type=dict[int, float])
    began = _noted(server)
    while not accepted.keys() <= began.keys():
        began = _noted(server)
    # A node may be faster than the news of the acceptance.
    delays = sorted(max(0.0, began[number] - at) * 1_000 for number, at in accepted.items())
    return {"dispatch_ms_p95": percentile(delays, 95)}


def _noted(server: Child) -> dict[int, float]:
    """When the node of each start began."""
    server.tell("notes")
    return msgspec.json.decode(server.words("notes")[1], type=dict[int, float])
