"""External runners: processes that lease runs over HTTP and know nothing else of Ropewalk.

A runner leases runs of its pool, says now and then that it lives, and reports once. What it shows for that is the
lease's token: signed here, and valid for one run and one runner.
"""

from typing import Any, Final

import msgspec

from ropewalk.core.errors import InvalidInput, Problem, RunError
from ropewalk.core.instant import rfc3339
from ropewalk.core.trace import span_id, trace_id
from ropewalk.engines.base import Engine
from ropewalk.engines.leasing import Kept, Lease, Leased, Seeker
from ropewalk.engines.settings import DEFAULT_POOL
from ropewalk.store.offers import RUNNER

MOST_PORTS: Final = 16
Json = dict[str, Any]


def seeker(workspace: str, pool: str, runner: str, subject: str, limit: int) -> Seeker:
    """A runner that looks for work; the workers' own pool is not for runners."""
    if pool == DEFAULT_POOL:
        raise InvalidInput([Problem(("pool",), "is the workers' own: runners lease from pools that nodes name")])
    return Seeker(workspace, pool, name_of(runner, subject), limit)


def name_of(runner: str, subject: str) -> str:
    """The name under which a runner has its leases: no other runner may report under them."""
    return f"{RUNNER}{runner}@{subject}"


def told(leased: Leased, token: str) -> Json:
    """A run as its runner is told of it."""
    offer, work = leased.offer, leased.work
    return {
        "runId": leased.lease.run,
        "executionId": offer.execution,
        "node": offer.node,
        "item": leased.item,
        "attempt": offer.attempt,
        "type": work.type,
        "pool": offer.pool,
        "inputs": work.inputs,
        "idempotencyKey": leased.idempotency_key,
        "timeoutSeconds": work.timeout / 1_000_000,
        "deadline": rfc3339(leased.lease.deadline),
        "leaseUntil": rfc3339(offer.lease_until or leased.lease.deadline),
        "leaseToken": token,
        "traceparent": _traceparent(leased),
    }


def _traceparent(leased: Leased) -> str:
    """What the runner's own spans hang under: the run's, in the trace of its execution."""
    continued = leased.work.trace
    flags = "01" if continued is None else continued[-2:]
    return f"00-{trace_id(leased.offer.execution, continued)}-{span_id(leased.lease.run)}-{flags}"


def kept(found: Kept) -> Json:
    """What a heartbeat is answered with."""
    return {"leaseUntil": rfc3339(found.until), "stop": found.is_stopped}


def written(lease: Lease) -> list[Any]:
    """A lease in the form a token is made of."""
    return list(msgspec.structs.astuple(lease))


def read(place: Any) -> Lease:
    """The lease a token was made of."""
    return Lease(*place)


async def complete(engine: Engine, lease: Lease, output: Any, ports: list[str],
                   tokens: int | None = None) -> None:  # fmt: skip
    """The run has this result, and used up so many tokens, if the runner counted them."""
    await engine.leasing.succeed(lease, output, tuple(ports), tokens)


async def fail(engine: Engine, lease: Lease, error: RunError) -> None:
    """The run failed so."""
    await engine.leasing.fail(lease, error)
