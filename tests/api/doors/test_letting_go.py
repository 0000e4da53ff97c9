"""Who is let go while they wait for something."""

import asyncio

from ropewalk.access.rights import Role
from tests.api.house import House
from tests.api.nouns.test_leases import RUNS, lease, line_forms, start
from tests.api.streams import PATIENCE


async def test_a_runner_that_loses_its_rights_while_waiting_gets_nothing_and_another_does(house: House):
    runner = await house.key(Role.RUNNER)
    wanted = {"pool": "paint", "runnerId": "ann", "waitSeconds": 20}
    waiting = asyncio.ensure_future(house.ask("POST", f"{RUNS}/lease", runner, json=wanted, timeout=PATIENCE))
    await line_forms(house)
    await house.ask("DELETE", f"/keys/{runner.split('_')[1]}")

    execution = await start(house)
    refused = await waiting
    [run] = await lease(house)

    assert refused.status_code == 401
    assert (run["executionId"], run["attempt"]) == (execution, 1)
