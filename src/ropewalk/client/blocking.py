"""The client for threads: every verb answers when it returns."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final, Self, TypeVar

import httpx2

from ropewalk.client.address import CONNECT, PATIENCE, Settings, content, settings, silence, target
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
from ropewalk.client.verbs import Blocking
from ropewalk.client.workspace import Built, WorkspaceVerbs, started
from ropewalk.core.canonical import JSON

Answer = TypeVar("Answer")
_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Line:
    """Carries talks out, one step after the other, in the thread that asks."""

    def __init__(self, to: Settings) -> None:
        self.patience = to.patience
        self._to = to
        self.saved: dict[str, Saved] = {}
        self._http = httpx2.Client(base_url=to.base, headers=to.headers, trust_env=to.uses_environment)

    def close(self) -> None:
        self._http.close()

    def carry_out(self, talk: Talk[Answer]) -> Answer:
        with ExitStack() as streams:
            step = resume(talk)
            while not isinstance(step, End):
                step = resume(talk, self._outcome(step, streams))
            return step.value

    def listen(self, talk: Series[Answer]) -> Iterator[Answer]:
        with ExitStack() as streams:
            step = resume(talk)
            while not isinstance(step, End):
                if isinstance(step, Item):
                    yield step.value
                    step = resume(talk)
                else:
                    step = resume(talk, self._outcome(step, streams))

    def _outcome(self, step: Step, streams: ExitStack) -> Any:
        try:
            return self._done(step, streams)
        except httpx2.TransportError as error:
            return TransportError(error, is_unsent=isinstance(error, _UNSENT))

    def _done(self, step: Step, streams: ExitStack) -> Any:
        match step:
            case Send(request):
                response = self._http.send(self._request(request))
                return Reply(response.status_code, response.headers, response.content)
            case SendFile(request, path):
                with open(path, "rb") as file:
                    response = self._http.send(self._request(request, iter(lambda: file.read(CHUNK), b"")))
                return Reply(response.status_code, response.headers, response.content)
            case Save(request, path, digest):
                return self._saved(request, path, digest)
            case Open(request):
                return self._opened(request, streams)
            case Read(stream):
                return stream.next()
            case Close(stream):
                return stream.close()
            case Sleep(seconds):
                return time.sleep(seconds)

    def _saved(self, request: Request, path: str, digest: str) -> Reply:
        with ExitStack() as closing:
            response = self._http.send(self._request(request), stream=True)
            closing.callback(response.close)
            if response.status_code >= 400:
                return Reply(response.status_code, response.headers, response.read())
            with Saving(path, digest) as saving:
                for chunk in response.iter_bytes(CHUNK):
                    saving.add(chunk)
                saving.finish()
        return Reply(response.status_code, response.headers)

    def _opened(self, request: Request, streams: ExitStack) -> Reply:
        response = self._http.send(self._request(request), stream=True)
        streams.callback(response.close)
        if response.status_code >= 400:
            return Reply(response.status_code, response.headers, response.read())
        return Reply(response.status_code, response.headers, stream=_Stream(response, self._to.largest))

    def _request(self, request: Request, chunks: Iterator[bytes] | None = None) -> httpx2.Request:
        body, headers = content(request)
        timeout = httpx2.Timeout(silence(request), connect=CONNECT)
        where = target(request, self._to)
        sent = body if chunks is None else chunks
        return self._http.build_request(request.method, where, content=sent, headers=headers, timeout=timeout)


class _Stream:
    def __init__(self, response: httpx2.Response, largest: int) -> None:
        self._chunks = response.iter_bytes()
        self._messages = Messages(largest)
        self._ready: deque[Message] = deque()
        self.close = response.close

    def next(self) -> Message | None:
        while not self._ready:
            chunk = next(self._chunks, None)
            if chunk is None:
                return None
            self._ready += self._messages.feed(chunk)
        return self._ready.popleft()


class Execution(Blocking, ExecutionVerbs):
    """One execution on a server."""


class Lease(Blocking, LeaseVerbs):
    """A run that was handed to a runner, until it is reported or the lease runs out."""


class Runner(Blocking, RunnerVerbs):
    """Takes the runs of a pool."""

    def leases(self, limit: int = 1) -> Iterator[Lease]:
        """Runs as they come, for ever; at most so many are taken at a time."""
        return (Lease(self.line, run) for run in self.line.listen(leased(self, limit)))


class Client(Blocking, WorkspaceVerbs):
    """A Ropewalk server, for programs without a loop.

    `patience` is for how many seconds in all a request is tried again while the server cannot answer.
    """

    line: Line

    def __init__(self, url: str, token: str, workspace: str | None = None, *, patience: float = PATIENCE,
                 allow_http: bool = False) -> None:  # fmt: skip
        self.line = Line(settings(url, token, workspace, patience, allow_http=allow_http))

    def start(self, workflow: str | Mapping[str, JSON] | Built, input: JSON = None, *,  # noqa: A002
              vars: Mapping[str, JSON] | None = None, priority: int | None = None, version: int | None = None,  # noqa: A002
              key: str | None = None) -> Execution:  # fmt: skip
        """Accept an execution of the workflow of this id or name, or of this document or `Workflow`, which is saved
        and published the first time.

        It survives any crash from here on. It is accepted once, also if a request has to be repeated: under `key`, or
        under one made for this call.
        """
        talk = started(self, workflow, input, vars, priority=priority, version=version, key=key)
        return Execution(self.line, self.line.carry_out(talk))

    def execution(self, execution: str) -> Execution:
        """An execution by its id."""
        return Execution(self.line, execution)

    def runner(self, pool: str, name: str | None = None) -> Runner:
        """A runner, which takes the runs of a pool."""
        return Runner(self.line, pool, name or runner_name())

    def close(self) -> None:
        """Let every connection go."""
        self.line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
