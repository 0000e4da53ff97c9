"""Leases over HTTP: how an external runner gets work, says that it lives, and reports.

The lease's token is the fence: under one that is late, foreign or made up nothing changes, and the answer is 409.
"""

import asyncio
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from starlette.requests import Request

from ropewalk.access.rights import Right
from ropewalk.api.backend import Backend
from ropewalk.api.doors.authorization import Call, authorize
from ropewalk.api.nouns.runs import RunId
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, exemplified
from ropewalk.api.shapes.problems import Refused
from ropewalk.api.streaming.waiters import hung_up
from ropewalk.core.canonical import LARGEST_INTEGER
from ropewalk.core.errors import ErrorType, Forbidden, RopewalkError, RunError
from ropewalk.engines.leasing import Lease, Leased
from ropewalk.nodes.failure import LONGEST_BODY, LONGEST_DETAIL, LONGEST_MESSAGE
from ropewalk.service import runners
from ropewalk.store.workspaces import DEFAULT

routes = Routes("/workflow/runs", "Runners")

LARGEST_OUTPUT: Final = 16 * 1024 * 1024
LONGEST_WAIT: Final = 60
LONGEST_RETRY_AFTER: Final = 3_600
LARGEST_STATUS: Final = 999
SIGNED_AS: Final = "lease"
_TOKEN: Final = "kYc0VqXl5tS1n0hEo6Yx2Q"
_RUN: Final = "019a8b6e-4f7c-7c1e-8d5e-2f6a1b3c4d5e"
_EXECUTION: Final = "019a8b6e-4f70-7a3b-9c1d-0e2f4a6b8c0d"

Token = Annotated[str, Field(min_length=1, max_length=2_048, pattern=r"^[A-Za-z0-9_-]+$")]
Tokens = Annotated[
    int | None, Field(ge=0, le=LARGEST_INTEGER, description="How many of a language model's the run used up.")
]
Port = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class LeaseBody(Body):
    """The runner that looks for work, its pool, how many runs it takes, and how long it waits for the first."""

    model_config = exemplified(Body, {"pool": "paint", "runnerId": "painter-1", "limit": 1, "waitSeconds": 30})

    pool: str = Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:/-]+$")
    runner_id: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")
    limit: int = Field(1, ge=1, le=100)
    wait_seconds: int = Field(0, ge=0, le=LONGEST_WAIT)


class LeasedRun(Answer):
    """A run that is the caller's until `leaseUntil`, or longer if it sends heartbeats; at most until `deadline`."""

    run_id: str
    execution_id: str
    node: str
    item: int | None
    attempt: int
    type: str
    pool: str
    inputs: Any
    idempotency_key: str
    timeout_seconds: float
    deadline: str
    lease_until: str
    lease_token: str
    traceparent: str


class Leases(Answer):
    """The runs that are the caller's now; none if none came in time."""

    model_config = exemplified(
        Answer,
        {
            "runs": [
                {
                    "runId": _RUN,
                    "executionId": _EXECUTION,
                    "node": "paint",
                    "item": None,
                    "attempt": 1,
                    "type": "noop",
                    "pool": "paint",
                    "inputs": {"value": {"colour": "red"}},
                    "idempotencyKey": "5f0c…",
                    "timeoutSeconds": 300.0,
                    "deadline": "2026-11-16T08:05:00Z",
                    "leaseUntil": "2026-11-16T08:02:00Z",
                    "leaseToken": _TOKEN,
                    "traceparent": "00-019a8b6e4f707a3b9c1d0e2f4a6b8c0d-2b7f1a6f0c3d4e5f-01",
                }
            ]
        },
    )

    runs: list[LeasedRun]


class HeartbeatBody(Body):
    """The runner lives and goes on."""

    model_config = exemplified(Body, {"leaseToken": _TOKEN})

    lease_token: Token


class CompleteBody(Body):
    """What came out; `ports` for nodes that take one of several, `tokens` for those that ask a language model."""

    model_config = exemplified(
        Body,
        {"leaseToken": _TOKEN, "output": {"painted": True}},
        {"leaseToken": _TOKEN, "output": "Dear Ann, …", "tokens": 1_204},
    )

    lease_token: Token
    output: Any = None
    ports: list[Port] = Field(default_factory=list, max_length=runners.MOST_PORTS)
    tokens: Tokens = None


class FailureBody(Body):
    """Why it failed: TRANSIENT and TIMEOUT are tried again, PERMANENT is not."""

    type: Literal["TRANSIENT", "PERMANENT", "TIMEOUT"]
    message: str = Field(min_length=1, max_length=LONGEST_MESSAGE)
    detail: str | None = Field(None, max_length=LONGEST_DETAIL)
    retry_after: float | None = Field(None, ge=0, le=LONGEST_RETRY_AFTER)
    status: int | None = Field(None, ge=0, le=LARGEST_STATUS, description="What a server answered.")
    body: str | None = Field(None, max_length=LONGEST_BODY, description="The beginning of that answer.")


class FailBody(Body):
    """The run failed."""

    model_config = exemplified(
        Body, {"leaseToken": _TOKEN, "error": {"type": "TRANSIENT", "message": "out of red", "retryAfter": 60}}
    )

    lease_token: Token
    error: FailureBody
    tokens: Tokens = None


class Kept(Answer):
    """The lease goes on until then; `stop` says that the result is not wanted any more."""

    model_config = exemplified(Answer, {"leaseUntil": "2026-11-16T08:02:00Z", "stop": False})

    lease_until: str
    stop: bool


class ReportTaken(Answer):
    """The report is kept; it survives any crash from here on."""

    model_config = exemplified(Answer, {"runId": _RUN})

    run_id: str


@routes.post("/lease", Right.RUN, response_model=Leases)
async def lease_runs(call: Caller, request: Request, body: LeaseBody) -> dict[str, Any]:
    """The oldest free runs of a pool, leased to the caller; waits up to `waitSeconds` for the first of them."""
    _require_pool(call, body.pool)
    seeker = runners.seeker(call.workspace, body.pool, body.runner_id, call.actor.subject, body.limit)
    leasing = call.service.engine.leasing
    gone = asyncio.ensure_future(hung_up(request))
    try:
        found = await leasing.lease(seeker, body.wait_seconds, gone)
        await _hand_over(call, request, found, is_gone=gone.done())
    finally:
        gone.cancel()
    return {"runs": [runners.told(each, _written(call, each.lease)) for each in found]}


async def _hand_over(call: Call, request: Request, found: list[Leased], *, is_gone: bool) -> None:
    """Give the runs back if the caller has hung up, or lost its rights while it waited."""
    try:
        if found and not is_gone:
            # Once more: the runner may have waited for a minute, and lost its rights meanwhile.
            await authorize(request, call.right)
    except (RopewalkError, Refused):
        await call.service.engine.leasing.give_back(found)
        raise
    if is_gone:
        await call.service.engine.leasing.give_back(found)


def _require_pool(call: Call, pool: str) -> None:
    call.require()
    if call.actor.pools is not None and pool not in call.actor.pools:
        raise Forbidden(f"this key is for other pools than {pool!r}")


def _written(call: Call, lease: Lease) -> str:
    return call.backend.cursors.write(SIGNED_AS, runners.written(lease))


@routes.post("/{runId}/heartbeat", Right.RUN, response_model=Kept, problems=(409,))
async def heartbeat_run(call: Caller, run_id: RunId, body: HeartbeatBody) -> dict[str, Any]:
    """Keep a run for another while; the answer says whether to stop."""
    lease = _shown(call, run_id, body.lease_token)
    return runners.kept(await call.service.engine.leasing.keep(lease))


@routes.post("/{runId}/complete", Right.RUN, response_model=ReportTaken, problems=(409,), largest=LARGEST_OUTPUT)
async def complete_run(call: Caller, run_id: RunId, body: CompleteBody) -> dict[str, Any]:
    """The run has succeeded with this output."""
    lease = _shown(call, run_id, body.lease_token)
    await runners.complete(call.service.engine, lease, body.output, body.ports, body.tokens)
    return {"runId": run_id}


@routes.post("/{runId}/fail", Right.RUN, response_model=ReportTaken, problems=(409,))
async def fail_run(call: Caller, run_id: RunId, body: FailBody) -> dict[str, Any]:
    """The run has failed; whether it is tried again is decided as for every other."""
    lease, told = _shown(call, run_id, body.lease_token), body.error
    answered = (told.status, told.body)
    error = RunError(ErrorType(told.type), told.message, told.detail, told.retry_after, body.tokens, *answered)
    await runners.fail(call.service.engine, lease, error)
    return {"runId": run_id}


def _shown(call: Call, run: str, token: str) -> Lease:
    """The lease a token stands for, if it is of this run and the caller's own."""
    call.require()
    try:
        lease = runners.read(call.backend.cursors.read(SIGNED_AS, token))
    except Refused as refusal:
        raise call.service.engine.leasing.not_theirs(run) from refusal
    if lease.run != run or lease.workspace != call.workspace or not lease.runner.endswith(f"@{call.actor.subject}"):
        raise call.service.engine.leasing.not_theirs(run)
    return lease


def open_to_runners(backend: Backend) -> None:
    """Let the engine lease runs to HTTP runners: nodes may now name pools that no worker has."""
    backend.service(DEFAULT).engine.leasing.is_open = True


def end_waiting(app: Any) -> None:
    """Answer the runners that wait for work and the callers that wait for executions, before the server waits for
    them."""
    backend = getattr(getattr(app, "state", None), "backend", None)
    if backend is not None:
        backend.service(DEFAULT).engine.leasing.end_waiting()
        backend.waiters.end()
