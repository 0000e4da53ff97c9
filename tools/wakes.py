"""How late parked executions wake when very many are due at the same moment.

python -m tools.wakes                              # both stores, 10,000 executions, nothing limits the workspace
python -m tools.wakes --store postgres --size 2000 --slots 20
python -m tools.wakes --db postgres://user@host/database

Prints one JSON line per store: how late the waits ended and the next nodes started, as the logs say, and the most
memory the worker held. Exit 1 if a wait in a hundred ended later than the bar, or an execution did not end in success.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Final

import uvloop
from msgspec import Struct

from ropewalk.bench import stores
from ropewalk.bench.child import peak_rss_mb
from ropewalk.bench.figures import percentile
from ropewalk.bench.stores import STORES
from ropewalk.core import log
from ropewalk.core.duration import SECOND
from ropewalk.core.events import Event, ExecutionSucceeded, NodesStarted, NodeSucceeded
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Version
from ropewalk.engines.process import settle_in
from ropewalk.service import Service
from ropewalk.store import executions, live
from ropewalk.store import log as stored_log
from ropewalk.store.executions import Filter
from ropewalk.store.workspaces import DEFAULT
from ropewalk.wiring import Settings, open_service

SIZE: Final = 10_000
BAR: Final = 2.0
"""A wait in a hundred may end later than this (s)."""
AT_ONCE: Final = 1_000
PER_SECOND: Final = 1_000
"""So many are accepted and parked in a second, at the least."""
SHORTEST_WAIT: Final = 15.0
"""Only a wait that is longer than 10 s is parked."""
PATIENCE: Final = 300.0
LOOK_EVERY: Final = 0.2
DOCUMENT: Final = {
    "ropewalk": 1,
    "name": "wakes",
    "nodes": [
        {"id": "wait", "type": "wait", "with": {"until": "{{ input.due }}"}},
        {"id": "after", "type": "noop"},
    ],
    "edges": [{"from": "wait", "to": "after"}],
}


class Late(Struct, frozen=True):
    """How much later than it was due something came (s)."""

    p50: float
    p99: float
    max: float


class Woken(Struct, frozen=True):
    """What came of executions that were due together; `all_in` is when the last of them had ended (s)."""

    size: int
    succeeded: int
    waits: Late
    next_nodes: Late
    all_in: float
    peak_mb: float

    @property
    def is_good(self) -> bool:
        return self.succeeded == self.size and self.waits.p99 <= BAR


async def measure(db: str, size: int = SIZE, slots: int | None = None) -> Woken:
    """Park so many executions that are due at the same moment, and see how they wake; `slots` limits the workspace."""
    async with open_service(Settings(db=db, default_slots=slots)) as service:
        version = await service.save(DOCUMENT)
        due = time.time() + SHORTEST_WAIT + size / PER_SECOND
        executions = await parked(service, version, due, size)
        return await woken(service, executions, round(due * SECOND))


async def parked(service: Service, version: Version, due: float, size: int) -> list[str]:
    """The ids of so many executions that wait until then, none of them in memory."""
    executions: list[str] = []
    for first in range(0, size, AT_ONCE):
        some = range(first, min(size, first + AT_ONCE))
        executions += await asyncio.gather(*[service.start(version, {"due": due}) for _ in some])
    while service.engine.load.executions:
        await asyncio.sleep(0.1)
    if time.time() > due - 1:
        raise RuntimeError(f"to park {size} executions took too long: the first were due before the last was parked")
    return executions


async def woken(service: Service, ids: Sequence[str], due: int) -> Woken:
    """Wait for all of them, and read what their logs say."""
    await asyncio.sleep(due / SECOND - time.time())
    async with asyncio.timeout(PATIENCE):
        while service.engine.load.executions or await live.next_wake(service.store) or await _is_any_left(service):
            await asyncio.sleep(LOOK_EVERY)
    ends, starts, last, succeeded = [], [], due, 0
    for first in range(0, len(ids), AT_ONCE):
        logs = await stored_log.whole(service.store, ids[first : first + AT_ONCE])
        for entries in logs.values():
            events = list(log.decode_all(entries))
            ends.append(_ended(events) - due)
            starts.append(_started(events) - due)
            last = max(last, events[-1].at)
            succeeded += isinstance(events[-1], ExecutionSucceeded)
    return Woken(len(ids), succeeded, _late(ends), _late(starts), (last - due) / SECOND, peak_rss_mb())


async def _is_any_left(service: Service) -> bool:
    """Also one that is taken from its wait and not in memory yet."""
    return bool(await executions.counted(service.store, DEFAULT, Filter(state=ExecutionState.RUNNING), limit=1))


def _ended(events: Sequence[Event]) -> int:
    return next(each.at for each in events if isinstance(each, NodeSucceeded) and each.node == "wait")


def _started(events: Sequence[Event]) -> int:
    return next(each.at for each in events if isinstance(each, NodesStarted) and "after" in each.nodes)


def _late(microseconds: list[int]) -> Late:
    seconds = sorted(each / SECOND for each in microseconds)
    return Late(percentile(seconds, 50), percentile(seconds, 99), seconds[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=(*STORES, "both"), default="both")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--slots", type=int)
    parser.add_argument("--db")
    said = parser.parse_args()
    settle_in()
    is_good = True
    for name in STORES if said.store == "both" else (said.store,):
        with stores.opened(name, tempfile.gettempdir(), said.db) as kind, kind.fresh() as db:
            found = uvloop.run(measure(db, said.size, said.slots))
        print(json.dumps({"store": name, **_json(found)}), flush=True)
        is_good &= found.is_good
    return 0 if is_good else 1


def _json(found: Woken) -> dict[str, object]:
    lates = {"waits": found.waits, "next_nodes": found.next_nodes}
    told = {
        f"{name}_{part}_s": round(getattr(late, part), 3)
        for name, late in lates.items()
        for part in Late.__struct_fields__
    }
    about = {"size": found.size, "succeeded": found.succeeded, **told}
    return {**about, "all_in_s": round(found.all_in, 3), "peak_mb": round(found.peak_mb)}


if __name__ == "__main__":
    sys.exit(main())
