"""The client for loops: every verb is awaited."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, Self, TypeVar

import httpx2

from ropewalk.client.address import PATIENCE, Settings, sent, settings
from ropewalk.client.answers import LeasedRun
from ropewalk.client.executions import ExecutionVerbs
from ropewalk.client.runs import LeaseVerbs, RunnerVerbs, leased, runner_name
from ropewalk.client.talking import (
    Close,
    End,
    Item,
    Open,
    Read,
    Reply,
    Request,
    Send,
    Series,
    Sleep,
    Step,
    Talk,
    resume,
)
from ropewalk.client.verbs import Awaiting, AwaitingLine
from ropewalk.client.workspace import WorkspaceVerbs, started
from ropewalk.core.canonical import JSON

Answer = TypeVar("Answer")


class Line:
    """Carries talks out, one step after the other, on the loop that asks."""

    def __init__(self, to: Settings) -> None:
        self.patience = to.patience
        self._to = to
        self._http = httpx2.AsyncClient(**to.http)

    async def close(self) -> None:
        await self._http.aclose()

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
        except httpx2.TransportError as error:
            return error

    async def _done(self, step: Step, streams: AsyncExitStack) -> Any:
        match step:
            case Send(request):
                response = await self._http.send(self._request(request))
                return Reply(response.status_code, response.headers, response.content)
            case Open(request):
                return await self._opened(request, streams)
            case Read(stream):
                return await anext(stream.messages, None)
            case Close(stream):
                return await stream.response.aclose()
            case Sleep(seconds):
                return await asyncio.sleep(seconds)

    async def _opened(self, request: Request, streams: AsyncExitStack) -> Reply:
        response = await self._http.send(self._request(request), stream=True)
        streams.push_async_callback(response.aclose)
        if response.status_code >= 400:
            return Reply(response.status_code, response.headers, await response.aread())
        return Reply(response.status_code, response.headers, stream=_Stream(response, self._to.largest))

    def _request(self, request: Request) -> httpx2.Request:
        return self._http.build_request(**sent(request, self._to))


class _Stream:
    def __init__(self, response: httpx2.Response, largest: int) -> None:
        self.response = response
        self.messages = aiter(httpx2.EventSource(response, largest))


class AsyncExecution(Awaiting, ExecutionVerbs):
    """One execution on a server."""

    def __init__(self, line: AwaitingLine, execution: str) -> None:
        self.line = line
        self.id = execution


class AsyncLease(Awaiting, LeaseVerbs):
    """A run that was handed to a runner, until it is reported or the lease runs out."""

    def __init__(self, line: AwaitingLine, run: LeasedRun) -> None:
        self.line = line
        self.run = run


class AsyncRunner(Awaiting, RunnerVerbs):
    """Takes the runs of a pool."""

    def __init__(self, line: AwaitingLine, pool: str, name: str) -> None:
        self.line = line
        self.pool = pool
        self.name = name

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

    async def start(self, workflow: str | Mapping[str, JSON], input: JSON = None, *,  # noqa: A002
                    vars: Mapping[str, JSON] | None = None, priority: int | None = None, version: int | None = None,  # noqa: A002
                    key: str | None = None) -> AsyncExecution:  # fmt: skip
        """Accept an execution of the workflow of this id or name, or of this document, which is saved and published.

        It survives any crash from here on. Whatever happens on the way, it is accepted once: under `key`, or under
        one made for this call.
        """
        talk = started(self, workflow, input, vars, priority=priority, version=version, key=key)
        return AsyncExecution(self.line, await self.line.carry_out(talk))

    def execution(self, execution: str) -> AsyncExecution:
        """An execution by its id."""
        return AsyncExecution(self.line, execution)

    def runner(self, pool: str, name: str | None = None) -> AsyncRunner:
        """Somebody who takes the runs of a pool."""
        return AsyncRunner(self.line, pool, name or runner_name())

    async def close(self) -> None:
        """Let every connection go."""
        await self.line.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
