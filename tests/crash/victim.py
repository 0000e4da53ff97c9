"""A process that executes workflows until it is killed, and the nursery that brings it up.

`python -m tests.crash.victim` reads one request a line and answers each with a process of its own, forked after the
slow imports: `born <pid>`, then what that process says, then `ended <code>`, negative for the signal that killed it.
A victim says `serving` once its first start is accepted, and dies when its driver does.
"""

import asyncio
import itertools
import logging
import os
import random
import signal
import sys
import traceback
from contextlib import suppress
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core.errors import Conflict, InvalidTransition
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.engines.base import Version
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service import Service
from ropewalk.store import dlq
from ropewalk.store.sqlite import SqliteStore
from ropewalk.telemetry.logs import FAILURES, ROOT
from ropewalk.wiring import Settings, node_types, open_service
from tests.crash.ledgers import Accepted, Place
from tests.crash.workflows import CHILD, GATED, LONG_NAP, WORKFLOWS, Gate, input_for, node_types_of
from tests.store.samples import ask

STDIN, STDOUT = 0, 1
FAILURE_LOG: Final = f"{ROOT}.{FAILURES}"
BROKEN: Final = 70
"""The exit code of a victim that met something that must not happen, with any kind of kill."""


class Task(StrEnum):
    """What a victim does."""

    LOAD = "load"
    GATE = "gate"
    QUIESCE = "quiesce"


class Request(Struct, frozen=True, kw_only=True):
    """One life of a victim."""

    place: Place
    task: Task = Task.LOAD
    seed: int = 0
    clients: int = 6
    drain_seconds: float = 10.0
    has_long_naps: bool = False
    dies_before_commit: int | None = None
    """It kills itself when it is about to commit for this time: what it then decided must not have happened."""


def say(line: str) -> None:
    os.write(STDOUT, f"{line}\n".encode())


class Victim:
    """One process: a service, its clients, and the person who works off dead letters."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._chance = random.Random(request.seed)
        self._accepted = request.place.clients
        self._gate = Gate(arrive=lambda: say("waiting"))
        self._stop = asyncio.Event()
        self._is_serving = False

    async def live(self) -> None:
        self._listen()
        request = self._request
        types = node_types(node_types_of(request.place.effects, self._gate))
        settings = Settings(db=request.place.database, worker=WorkerSettings(drain_seconds=request.drain_seconds))
        async with open_service(settings, types) as service:
            if request.dies_before_commit is not None:
                assert isinstance(service.store, SqliteStore)
                die_before_commit(service.store, request.dies_before_commit)
            await self._tasks()[request.task](service)

    def _tasks(self) -> dict[Task, Any]:
        return {Task.LOAD: self._load, Task.GATE: self._wait_at_the_gate, Task.QUIESCE: self._quiesce}

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._told_to_stop)
        loop.add_reader(STDIN, self._told)
        loop.set_exception_handler(lambda _, context: broken(str(context)))

    def _told_to_stop(self) -> None:
        say("stopping")
        self._stop.set()

    def _told(self) -> None:
        """A line opens the gate; the end of all lines means that the driver will not kill us."""
        if os.read(STDIN, 4096):
            self._gate.is_open.set()
        else:
            os._exit(0)

    # Load

    async def _load(self, service: Service) -> None:
        await service.save(CHILD)
        versions = [await service.save(document) for document in WORKFLOWS]
        clients = [asyncio.create_task(self._client(service, versions)) for _ in range(self._request.clients)]
        stop = asyncio.create_task(self._stop.wait())
        done, _ = await asyncio.wait((*clients, stop), return_when=asyncio.FIRST_COMPLETED)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        for each in done:
            each.result()

    async def _client(self, service: Service, versions: list[Version]) -> None:
        while True:
            version = self._chance.choice(versions)
            value = input_for(self._chance, has_long_naps=self._request.has_long_naps)
            execution = await self._start(service, version, value)
            if value["nap"] == LONG_NAP:
                continue  # it may sleep for longer than this process has to live
            ended = await service.ended(execution)
            if ended.state is ExecutionState.FAILED and self._chance.random() < 0.5:
                await self._requeue(service, execution)

    async def _start(self, service: Service, version: Version, value: Any) -> str:
        execution = await service.start(version, input=value)
        kind = version.plan.definition.name
        self._accepted.write(Accepted(execution, kind), is_synced=True)
        if not self._is_serving:
            self._is_serving = True
            say("serving")
        return execution

    async def _requeue(self, service: Service, execution: str) -> None:
        """Mend what gave up, so that its execution goes on."""
        for letter in await dlq.of_execution(service.store, execution):
            if letter.resolution == Resolution.PENDING:
                with suppress(Conflict, InvalidTransition):
                    await service.requeue(letter.id, {"hopeless": False, "failures": 0, "takes": 0})

    # The gate

    async def _wait_at_the_gate(self, service: Service) -> None:
        version = await service.save(GATED)
        await self._start(service, version, None)
        await self._stop.wait()

    # The end

    async def _quiesce(self, service: Service) -> None:
        """Start nothing, and let everything end that was ever accepted."""
        say("serving")
        while left := ask(service.store.path, "select execution from live"):
            await asyncio.gather(*(service.ended(execution) for (execution,) in left))


def die_before_commit(store: SqliteStore, number: int) -> None:
    """SIGKILL to ourselves on the thread that commits, with everything written but the end of it."""
    commits, seen = itertools.count(1), [""]

    def look(statement: str) -> None:
        """Told of every statement, and of every step of one that has several, by the text of the whole."""
        seen.append(statement) if statement == seen[0] else seen.__setitem__(slice(None), [statement])
        if len(seen) == _steps(store, statement) and next(commits) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    store._connection.set_trace_callback(look)


def _steps(store: SqliteStore, statement: str) -> int:
    """How many steps a commit has; none, if the statement is no commit."""
    forms = {text.split(" values")[0]: forms for forms, text in store._writer._commits._texts.items()}
    batch = forms.get(statement.split(" values")[0])
    # The statement, its trigger, the two steps of the fence, and its own.
    return int(statement == "commit") if batch is None else 4 + len(batch)


def broken(reason: str) -> None:
    os.write(2, f"{reason}\n".encode())
    os._exit(BROKEN)


class Alarm(logging.Handler):
    """An engine that reports an error of its own here has met something no kill explains.

    What is logged about executions that fail is no such error: nodes fail here on purpose.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != FAILURE_LOG:
            broken(self.format(record))


def give_birth(request: Request) -> int:
    child = os.fork()
    if child == 0:
        live_and_die(request)
    return child


def live_and_die(request: Request) -> None:
    code = BROKEN
    try:
        say(f"born {os.getpid()}")
        logging.getLogger("ropewalk").addHandler(Alarm(logging.ERROR))
        asyncio.run(Victim(request).live())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    decoder = msgspec.json.Decoder(Request)
    while line := os.read(STDIN, 65536):
        child = give_birth(decoder.decode(line))
        _, status = os.waitpid(child, 0)
        say(f"ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
