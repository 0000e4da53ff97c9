"""Workers of a fleet as processes of their own, and the nursery that brings them up.

`python -m tests.fleet.member` reads one request a line and answers each with a process of its own, forked after the
slow imports: `born <pid>` at once, `ended <pid> <code>` when it is over, negative for the signal that killed it. What a
member has to say is in a file of its own. Members die with their nursery, and it with its driver.
"""

import asyncio
import ctypes
import logging
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from importlib import metadata
from typing import Final

import msgspec
import uvloop
from msgspec import Struct

from ropewalk.core.breaker import BreakerPolicies, BreakerPolicy
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service import Service
from ropewalk.store.postgres import PostgresStore
from ropewalk.wiring import FleetSettings, Settings, node_types, open_service
from tests.fleet.ledgers import Place
from tests.fleet.workflows import types_of

STDIN, STDOUT, STDERR = 0, 1, 2
BROKEN: Final = 70
_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Request(Struct, frozen=True, kw_only=True):
    """One life of a member."""

    place: Place
    name: str
    db: str
    lease: float = 2.0
    hands: int = 5_000
    executions: int = 20_000
    drain: float = 10.0
    pool: str = "default"
    version: str | None = None
    breaker: BreakerPolicy = BreakerPolicy()


def say(line: str) -> None:
    os.write(STDOUT, f"{line}\n".encode())


async def live(request: Request) -> None:
    """Execute what is there until told to leave."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_service(_settings(request), node_types(types_of(request.place))) as service:
        say(f"serving {service.store.worker}")
        await stop.wait()
        say("stopping")
    say(f"refused {_refused(service)}")


def _settings(request: Request) -> Settings:
    native = WorkerSettings(
        hands=request.hands,
        executions=request.executions,
        drain_seconds=request.drain,
        breaker=BreakerPolicies(request.breaker),
    )
    fleet = FleetSettings(pool=request.pool, lease_seconds=request.lease)
    return Settings(db=request.db, worker=native, fleet=fleet)


def _refused(service: Service) -> int:
    assert isinstance(service.store, PostgresStore)
    return service.store.stale_writes


# A life


def live_and_die(request: Request) -> None:
    code = BROKEN
    try:
        _die_with_parent()
        _write_to(request.place.log(request.name))
        _pretend(request)
        logging.basicConfig(
            level=logging.INFO,
            stream=sys.stderr,
            format="%(asctime)s.%(msecs)03d %(levelname)s %(name)s %(message)s",
            datefmt="%H:%M:%S",
        )
        uvloop.run(live(request))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(BROKEN)


def _write_to(path: str) -> None:
    """What the member says and what its engine logs goes to one file, and nothing is read from anyone."""
    told = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((told, STDOUT), (told, STDERR), (nothing, STDIN)):
        os.dup2(source, target)


def _pretend(request: Request) -> None:
    """Another release of the code."""
    if request.version is not None:
        setattr(metadata, "version", lambda _: request.version)  # noqa: B010 (to mypy it is no variable)


# The nursery


def give_birth(request: Request) -> int:
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        live_and_die(request)
    return child


def bury() -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            say(f"ended {ended[0]} {os.waitstatus_to_exitcode(ended[1])}")


def main() -> None:
    decoder = msgspec.json.Decoder(Request)
    bell, ringing = os.pipe()
    os.set_blocking(ringing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ringing, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([STDIN, bell], [], [])
        if bell in ready:
            os.read(bell, 4096)
            bury()
        if STDIN in ready:
            line = os.read(STDIN, 65536)
            if not line:
                return
            say(f"born {give_birth(decoder.decode(line))}")


if __name__ == "__main__":
    main()
