"""How much a worker takes on; apart from the engine, so that a process which only reads settings does without it."""

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.core.breaker import BreakerPolicies
from ropewalk.core.rate_limit import RateLimit

DEFAULT_POOL = "default"


class WorkerSettings(Struct, frozen=True):
    """How much a worker takes on at once; one that does not claim only records what it is told."""

    claims: bool = True
    pool: str = DEFAULT_POOL
    hands: int = 5_000
    executions: int = 20_000
    drain_seconds: float = 10.0
    runner_lease: float = 120.0
    claim_batch: int = 100
    dispatch_attempts: int = 3
    execution_bytes: int = 2**30
    breaker: BreakerPolicies = BreakerPolicies()
    rate_limits: Mapping[str, RateLimit] = {}
    """Those of the configuration: each is one for all workspaces."""
