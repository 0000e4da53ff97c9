"""A PostgreSQL that goes back in time under living workers: a failover to a lagging replica, or a restore."""

import asyncio
import time
from pathlib import Path
from typing import Final

from tests.faults.figures import Figure, Outcome
from tests.faults.ground import Ground, checked, ground
from tests.fleet.ledgers import Place
from tests.fleet.verdict import judge
from tests.postgres import PostgresServer

BEFORE: Final = 2.0
SETTLING: Final = 0.2
SERVING_WITHIN: Final = 60.0
QUIET_WITHIN: Final = 90.0


def time_travel(folder: Path, rounds: int) -> Outcome:
    """So often the database forgets its last seconds: only these are lost, and everything else goes on by itself."""
    postgres = PostgresServer(fsync="on", full_page_writes="on")
    try:
        return asyncio.run(_travelled(postgres, folder, rounds))
    finally:
        postgres.remove()


async def _travelled(postgres: PostgresServer, folder: Path, rounds: int) -> Outcome:
    place, url = Place(str(folder)), await postgres.create_database()
    recoveries: list[float] = []
    lost = 0
    async with ground(folder, url, "--workers", "2") as field:
        field.load(await field.save())
        for _ in range(rounds):
            await asyncio.sleep(BEFORE)
            since, until = await _go_back(postgres, field, place)
            lost += field.forget(since, until)
            recoveries.append(await field.serves(until, SERVING_WITHIN))
        await asyncio.sleep(BEFORE)
        await field.rest()
        violations = [*field.unexpected(), *(f"{each} hangs" for each in await field.quiet(QUIET_WITHIN))]
    verdict = await judge(url, place)
    violations += [each for each in verdict.violations if not _is_of_the_forgotten(each)]
    violations += await checked(url, folder)
    figures = [
        Figure("accepted_starts", verdict.accepted, "executions", rounds),
        Figure("starts_in_the_forgotten_seconds", lost, "executions", rounds),
        Figure("serving_again_max", round(max(recoveries), 2), "s", rounds),
    ]
    return Outcome("travel", figures, violations)


async def _go_back(postgres: PostgresServer, field: Ground, place: Place) -> tuple[float, float]:
    """Keep the database as it is, let everyone work on, then bring that state back; from when to when is forgotten.

    What nodes did meanwhile is forgotten with it: they do it again, as the contract says.
    """
    postgres.stop()
    effects = place.effects.read()
    postgres.keep_copy()
    # Clients hear nothing while the copy is made: what they are told from here on is not in it.
    since = time.monotonic()
    await field.serves(since, SERVING_WITHIN)
    await asyncio.sleep(BEFORE)
    # Beside the clients: what was acknowledged before the server stopped is read before the moment is taken.
    await asyncio.to_thread(postgres.stop)
    await asyncio.sleep(SETTLING)
    until = time.monotonic()
    place.effects.rewrite(effects)
    postgres.go_back()
    return since, until


def _is_of_the_forgotten(violation: str) -> bool:
    """Nodes that ran in the forgotten seconds left traces outside, and no database knows of them."""
    return "was seen at work and does not exist" in violation
