"""The client for loops: every verb is awaited."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from io import BufferedReader
from typing import Any, Self, TypeVar

import aiohttp
from yarl import URL

from ropewalk.client.address import PATIENCE, Settings, content, settings, target
from ropewalk.client.connecting import UNSENT, patience_of, session
from ropewalk.client.definition_answers import Saved
from ropewalk.client.executions import ExecutionVerbs
from ropewalk.client.files import CHUNK, Saving
from ropewalk.client.messages import Message, Messages
from ropewalk.client.runs import LeaseVerbs, RunnerVerbs, leased, runner_name
from ropewalk.client.talking import (
    Close,
    End,
    Item,
    Open,
    Read,
    Reply,
    Request,
    Save,
    Send,
    SendFile,
    Series,
    Sleep,
    Step,
    Talk,
    TransportError,
    resume,
)
from ropewalk.client.verbs import Awaiting
from ropewalk.client.workspace import Built, WorkspaceVerbs, started
from ropewalk.core.canonical import JSON

Answer = TypeVar("Answer")


class Line:
    """Carries talks out, one step after the other, on the loop that asks."""

    def __init__(self, to: Settings) -> None:
        self.patience = to.patience
        self._to = to
        self.saved: dict[str, Saved] = {}
        self._base = str(URL(to.base))
        self._session: aiohttp.ClientSession | None = None

    @property
    def _http(self) -> aiohttp.ClientSession:
        """The connections; made on the loop that asks first."""
        if self._session is None:
            self._session = session(self._to)
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def carry_out(self, talk: Talk[Answer]) -> Answer:
        async with AsyncExitStack() as streams:
            step = resume(talk)
            while not isinstance(step, End):
                step = resume(talk, await self._outcome(step, streams))
            return step.value

    async def listen(self, talk: Series[Answer]) -> AsyncIterator[Answer]:
        async with AsyncExitStack() as streams:
            step = resume(talk)
            while not isinstance(step, End):
                if isinstance(step, Item):
                    yield step.value
                    step = resume(talk)
                else:
                    step = resume(talk, await self._outcome(step, streams))

    async def _outcome(self, step: Step, streams: AsyncExitStack) -> Any:
        try:
            return await self._done(step, streams)
        except (aiohttp.ClientError, TimeoutError) as error:
            return TransportError(error, is_unsent=isinstance(error, UNSENT))

    async def _done(self, step: Step, streams: AsyncExitStack) -> Any:
        match step:
            case Send(request):
                async with self._asked(request) as response:
                    return Reply(response.status, response.headers, await response.read())
            case SendFile(request, path):
                with open(path, "rb") as file:
                    async with self._asked(request, _read(file)) as response:
                        return Reply(response.status, response.headers, await response.read())
            case Save(request, path, digest):
                return await self._saved(request, path, digest)
            case Open(request):
                return await self._opened(request, streams)
            case Read(stream):
                return await stream.next()
            case Close(stream):
                return stream.close()
            case Sleep(seconds):
                return await asyncio.sleep(seconds)

    async def _saved(self, request: Request, path: str, digest: str) -> Reply:
        async with self._asked(request) as response:
            if response.status >= 400:
                return Reply(response.status, response.headers, await response.read())
            with Saving(path, digest) as saving:
                async for chunk in response.content.iter_chunked(CHUNK):
                    await asyncio.to_thread(saving.add, chunk)
                saving.finish()
            return Reply(response.status, response.headers)

    async def _opened(self, request: Request, streams: AsyncExitStack) -> Reply:
        response = await self._asked(request)
        streams.callback(response.close)
        if response.status >= 400:
            return Reply(response.status, response.headers, await response.read())
        return Reply(response.status, response.headers, stream=_Stream(response, self._to.largest))

    def _asked(self, request: Request, chunks: AsyncIterator[bytes] | None = None) -> Any:
        body, headers = content(request)
        sent = body if chunks is None else chunks
        where = URL(self._base + target(request, self._to), encoded=True)
        return self._http.request(
            request.method, where, data=sent, headers=headers, allow_redirects=False, timeout=patience_of(request)
        )


async def _read(file: BufferedReader) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, CHUNK):
        yield chunk


class _Stream:
    def __init__(self, response: aiohttp.ClientResponse, largest: int) -> None:
        self._content = response.content
        self._messages = Messages(largest)
        self._ready: deque[Message] = deque()
        self.close = response.close

    async def next(self) -> Message | None:
        while not self._ready:
            chunk = await self._content.readany()
            if not chunk:
                return None
            self._ready += self._messages.feed(chunk)
        return self._ready.popleft()


class AsyncExecution(Awaiting, ExecutionVerbs):
    """One execution on a server."""


class AsyncLease(Awaiting, LeaseVerbs):
    """A run that was handed to a runner, until it is reported or the lease runs out."""


class AsyncRunner(Awaiting, RunnerVerbs):
    """Takes the runs of a pool."""

    def leases(self, limit: int = 1) -> AsyncIterator[AsyncLease]:
        """Runs as they come, for ever; at most so many are taken at a time."""
        return (AsyncLease(self.line, run) async for run in self.line.listen(leased(self, limit)))


class AsyncClient(Awaiting, WorkspaceVerbs):
    """A Ropewalk server, for programs with a loop.

    `patience` is for how many seconds in all a request is tried again while the server cannot answer.
    """

    line: Line

    def __init__(self, url: str, token: str, workspace: str | None = None, *, patience: float = PATIENCE,
                 allow_http: bool = False) -> None:  # fmt: skip
        self.line = Line(settings(url, token, workspace, patience, allow_http=allow_http))

    async def start(self, workflow: str | Mapping[str, JSON] | Built, input: JSON = None, *,  # noqa: A002
                    vars: Mapping[str, JSON] | None = None, priority: int | None = None, version: int | None = None,  # noqa: A002
                    key: str | None = None) -> AsyncExecution:  # fmt: skip
        """Accept an execution of the workflow of this id or name, or of this document or `Workflow`, which is saved
        and published the first time.

        It survives any crash from here on. It is accepted once, also if a request has to be repeated: under `key`, or
        under one made for this call.
        """
        talk = started(self, workflow, input, vars, priority=priority, version=version, key=key)
        return AsyncExecution(self.line, await self.line.carry_out(talk))

    def execution(self, execution: str) -> AsyncExecution:
        """An execution by its id."""
        return AsyncExecution(self.line, execution)

    def runner(self, pool: str, name: str | None = None) -> AsyncRunner:
        """A runner, which takes the runs of a pool."""
        return AsyncRunner(self.line, pool, name or runner_name())

    async def close(self) -> None:
        """Let every connection go."""
        await self.line.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
