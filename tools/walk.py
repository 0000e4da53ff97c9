"""Prints the way of one HTTP start to its first node: `python -m tools.walk`.

A server is started in this process, as `ropewalk up` does it, and executes a workflow of one node on a file a few
times. Then the next start is sent, and every function of `src/ropewalk` that is entered is noted, from the first byte
of that request to the first line of the node's own function, on the loop's thread and on all that the server uses.

What is held to the bar is what a reader has to follow:

- a function counts if it calls another function of Ropewalk on the way, or waits for one, and counts once. One that
  calls no other is a leaf, for which its name is enough; leaves are printed with `--all` and counted in the last line
- a comprehension or generator expression is an expression of the function in which it is written
- telemetry and the answer to the caller are beside the way: the node is reached without them
- the walk is the shortest of several: a background task that happens to have its turn meanwhile only makes one longer
"""

import argparse
import asyncio
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import uvloop

import ropewalk
from ropewalk.access.first import ensure_admin
from ropewalk.api.app import PREFIX, create_app
from ropewalk.api.doors.server import ServerSettings, address_of, listen, serving
from ropewalk.nodes.function import FunctionNode
from ropewalk.wiring import Settings, node_types, open_backend

SOURCE: Final = f"{Path(ropewalk.__file__).parent}/"
MOST_CALLS: Final = 50
MOST_FILES: Final = 20
WARM_UP: Final = 3
WALKS: Final = 5
NODE: Final = "walk.node"
DOCUMENT: Final[dict[str, Any]] = {
    "ropewalk": 1,
    "name": "walk",
    "nodes": [{"id": "first", "type": NODE}],
    "edges": [],
}
TELEMETRY: Final = ("telemetry/", "api/nouns/metrics.py", "engines/native/observing.py")
HANDED_OVER: Final = "engines/native/hands.py: Hands.start"
"""The node begins next, since its cause is durable; what the API does from then on is its answer."""
INLINE: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Hop(msgspec.Struct, eq=False):
    """One function that was entered: where it is, how deep below the loop, and whether it is followed further."""

    file: str
    function: str
    depth: int
    is_leaf: bool = True

    @property
    def name(self) -> str:
        return f"{self.file}: {self.function}"


class Recorder:
    """Notes which functions of Ropewalk are entered while it is on, on every thread that is told of it."""

    def __init__(self) -> None:
        self.hops: list[Hop] = []
        self.is_on = False
        # By the frames themselves: the id of one that is gone may be another's.
        self._entered: dict[FrameType, Hop] = {}

    def begin(self) -> None:
        self.hops, self._entered, self.is_on = [], {}, True

    def end(self) -> None:
        self.is_on = False
        self._entered = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls; a coroutine that goes on after a wait is no call."""
        if self.is_on and event == "call" and is_counted(frame.f_code) and frame not in self._entered:
            callers = [self._entered.get(each) for each in _callers(frame)]
            hop = Hop(place_of(frame.f_code), frame.f_code.co_qualname, len(callers))
            self._entered[frame] = hop
            if is_beside(hop.file) or any(each and is_beside(each.file) for each in callers):
                return
            self.hops.append(hop)
            if callers and callers[0]:
                callers[0].is_leaf = False


def is_counted(code: CodeType) -> bool:
    """Whether this is a function of Ropewalk, and no expression inside of one."""
    return code.co_name not in INLINE and code.co_filename.startswith(SOURCE)


def place_of(code: CodeType) -> str:
    return code.co_filename.removeprefix(SOURCE)


def is_beside(file: str) -> bool:
    return file.startswith(TELEMETRY)


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """The functions of Ropewalk that wait for this one, from the nearest on."""
    while (caller := frame.f_back) is not None:
        if is_counted(caller.f_code):
            yield caller
        frame = caller


def on_the_way(hops: Sequence[Hop]) -> list[Hop]:
    """Without the answer to the caller: what the API does once the node is handed over."""
    names = [hop.name for hop in hops]
    handed = names.index(HANDED_OVER) if HANDED_OVER in names else len(hops)
    return [hop for number, hop in enumerate(hops) if number < handed or not hop.file.startswith("api/")]


def followed(hops: Sequence[Hop]) -> list[Hop]:
    """Those that a reader has to follow, each once."""
    once = {hop.name: hop for hop in reversed(hops) if not hop.is_leaf}
    return [hop for hop in hops if once.get(hop.name) is hop]


class Server(msgspec.Struct, frozen=True):
    """Where the server is, what is sent to it, and what is set when the node's function was entered."""

    url: str
    token: str
    workflow: str
    entered: threading.Event

    def connect(self) -> socket.socket:
        where = urlsplit(self.url)
        assert where.hostname is not None
        assert where.port is not None
        return socket.create_connection((where.hostname, where.port), timeout=30)

    def ask(self, connection: socket.socket, line: str, body: bytes = b"") -> Any:
        """What the server answers."""
        about = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
        head = f"{line} HTTP/1.1\r\nhost: walk\r\nauthorization: Bearer {self.token}\r\n{about}\r\n"
        connection.sendall(head.encode() + body)
        status, _, answer = connection.recv(65_536).partition(b"\r\n\r\n")
        assert status.startswith(b"HTTP/1.1 20"), answer
        return msgspec.json.decode(answer)


@asynccontextmanager
async def started(db: str, recorder: Recorder) -> AsyncIterator[Server]:
    """A server that notes what is entered from a request on, until its node's function is."""
    entered = threading.Event()

    async def first() -> None:
        recorder.end()
        entered.set()

    async with open_backend(Settings(db=db), node_types([FunctionNode(first, name=NODE)])) as backend:
        token = await ensure_admin(backend.store)
        assert token is not None, "the store is new"
        version = await backend.service("default").save(DOCUMENT)
        listener = listen("127.0.0.1", 0)
        async with serving(create_app(backend, "walk"), listener, ServerSettings()):
            yield Server(address_of(listener), token, version.workflow, entered)


def walk(server: Server, recorder: Recorder) -> list[list[Hop]]:
    """Several walks, after a warm-up; each begins when the last execution has ended."""
    walks, path = [], f"{PREFIX}/workflow/executions"
    body = msgspec.json.encode({"workflowDefinitionId": server.workflow})
    with server.connect() as connection:
        for _ in range(WARM_UP + WALKS):
            server.entered.clear()
            recorder.begin()
            started = server.ask(connection, f"POST {path}/start", body)
            assert server.entered.wait(30), "the node was not executed"
            walks.append(on_the_way(recorder.hops))
            server.ask(connection, f"GET {path}/{started['executionId']}?wait=30s")
    return walks[WARM_UP:]


@contextmanager
def profiled(recorder: Recorder) -> Iterator[None]:
    """Functions are noted on this thread and on those that are started from now on."""
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def shortest(db: str) -> list[Hop]:
    """The walk on a new store at this address."""
    recorder = Recorder()
    with profiled(recorder):
        async with started(db, recorder) as server:
            walks = await asyncio.to_thread(walk, server, recorder)
    return min(walks, key=len)


def measured() -> list[Hop]:
    """The walk on a file."""
    with tempfile.TemporaryDirectory(prefix="ropewalk-walk-") as folder:
        return uvloop.run(shortest(str(Path(folder) / "walk.db")))


def told(hops: Sequence[Hop], *, is_all: bool) -> Iterator[str]:
    """Every hop that a reader follows, or every call; then the totals."""
    way = followed(hops)
    for number, hop in enumerate(hops if is_all else way, 1):
        yield f"{number:3} {'  ' * hop.depth}{hop.name}"
    yield f"{len(way)} functions (bar: {MOST_CALLS}) in {files(way)} files (bar: {MOST_FILES})"
    yield f"with leaves and repetitions: {len(hops)} calls in {files(hops)} files"


def files(hops: Sequence[Hop]) -> int:
    return len({hop.file for hop in hops})


def is_short(way: Sequence[Hop]) -> bool:
    return len(way) <= MOST_CALLS and files(way) <= MOST_FILES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.walk", description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="print every call, also of leaves and of what came before")
    parser.add_argument("--report", action="store_true", help="only print; the exit code is 0 though a bar is missed")
    options = parser.parse_args()
    hops = measured()
    print("\n".join(told(hops, is_all=options.all)))
    return 0 if options.report or is_short(followed(hops)) else 1


if __name__ == "__main__":
    sys.exit(main())
