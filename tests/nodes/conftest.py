"""A worker's facilities, contexts, and real servers on loopback."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from ropewalk.engines.files import StoredFiles
from ropewalk.nodes.base import Facilities, NodeContext, NodeFailure, Registry
from ropewalk.nodes.files import as_value, file_of
from ropewalk.nodes.functions import Functions
from ropewalk.nodes.network import NetworkPolicy
from ropewalk.store.sqlite import SqliteStore
from tests.s3 import s3_server

NOON = 1_800_000_000_000_000


def context_of(facilities, **changes):
    """The first attempt at node `a`, at noon."""
    key = changes.pop("idempotency_key", "key-of-this-work")
    about = {
        "execution": "e1",
        "workspace": "w1",
        "node": "a",
        "make_key": lambda: key,
        "now": NOON,
        "facilities": facilities,
    }
    return NodeContext(**about | changes)


@pytest.fixture(scope="session")
def registry():
    return Registry.builtin()


@pytest.fixture
def functions():
    return Functions()


@pytest.fixture
async def facilities(functions):
    """Facilities that may reach this machine."""
    opened = Facilities(NetworkPolicy(allow=("127.0.0.1",)), functions=functions, threads=2, processes=1)
    yield opened
    await opened.close()


@pytest.fixture
async def files(facilities, tmp_path):
    """Where the content of files is, for the contexts of these facilities."""
    store = await SqliteStore.open(str(tmp_path / "files.db"))
    facilities.files = StoredFiles(store)
    yield facilities.files
    await store.close()


@pytest.fixture
def keep(files):
    """Keeps content as a file, and gives its value."""

    async def kept(content, name="orders.csv", media_type="text/csv"):
        async def chunks():
            yield content.encode() if isinstance(content, str) else content

        return as_value(await files.write(chunks(), name, media_type))

    return kept


@pytest.fixture
def content(files):
    """The content of the file that a value is."""

    async def read(value):
        return b"".join([chunk async for chunk in files.read(file_of(value))])

    return read


@pytest.fixture
def run(registry, facilities):
    """Runs one attempt of a built-in type with these inputs."""

    async def run_node(type_name, inputs=None, **changes):
        node_type = registry.get(type_name)
        return await node_type.run(node_type.accept(inputs), context_of(facilities, **changes))

    return run_node


@pytest.fixture(scope="session")
def s3():
    """The address of a server that speaks S3."""
    with s3_server() as url:
        yield url


class Site:
    """An HTTP server on loopback that keeps what it was asked."""

    def __init__(self):
        self.requests = []
        self.answers: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {}
        self.url = ""
        self.query = ""

    def answer(self, path, *args, **kwargs):
        """Answers a path with a `web.Response` of these arguments."""

        async def answer(request):
            return web.Response(*args, **kwargs)

        self.answers[path] = answer

    def redirect(self, path, location, status=302):
        self.answer(path, status=status, headers={"Location": location})

    async def handle(self, request):
        self.query = request.query_string
        self.requests.append((request.method, request.path, dict(request.headers), await request.text()))
        return await self.answers[request.path](request)

    @property
    def asked(self):
        return [(method, path) for method, path, _, _ in self.requests]

    @property
    def headers(self):
        """The headers of the last request, lower-case."""
        return {name.lower(): value for name, value in self.requests[-1][2].items()}

    @property
    def body(self):
        return self.requests[-1][3]


@pytest.fixture
async def site():
    async for opened in serve():
        yield opened


@pytest.fixture
async def other_site():
    """Another origin on the same machine."""
    async for opened in serve():
        yield opened


async def serve():
    site = Site()
    server = web.Server(site.handle)
    runner = web.ServerRunner(server)
    await runner.setup()
    listener = web.TCPSite(runner, "127.0.0.1", 0)
    await listener.start()
    site.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield site
    await runner.cleanup()


class Peer:
    """A TCP server that says what it is told to and hangs up, or never says anything."""

    def __init__(self, says, is_asked):
        self.says = says
        self.is_asked = is_asked
        self.met = asyncio.Event()
        self.port = 0

    async def handle(self, reader, writer):
        self.met.set()
        if self.is_asked:
            await reader.readuntil(b"\r\n\r\n")
        if self.says is None:
            await reader.read()
        else:
            writer.write(self.says)
        writer.close()


@pytest.fixture
async def peer():
    """Starts peers; each is closed at the end."""
    servers = []

    async def start(says, is_asked=True):
        opened = Peer(says, is_asked)
        server = await asyncio.start_server(opened.handle, "127.0.0.1", 0)
        opened.port = server.sockets[0].getsockname()[1]
        servers.append(server)
        return opened

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


@pytest.fixture
def request_(run, site):
    """Sends a request to the site and gives back the output."""

    async def send(path="/", **inputs):
        return (await run("http.request", {"url": site.url + path} | inputs)).value

    return send


@pytest.fixture
def failure(request_):
    """Sends a request to the site and gives back the failure."""

    async def send(path="/", **inputs):
        with pytest.raises(NodeFailure) as caught:
            await request_(path, **inputs)
        return caught.value.error

    return send
