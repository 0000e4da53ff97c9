"""Two servers fire the same schedules while one of them is killed: every due time is decided once, and none is lost."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from ropewalk.core.schedule import moment_of
from ropewalk.service import Service
from ropewalk.store import triggers
from ropewalk.wiring import Settings, open_service
from tests.polling import until

SCHEDULES: Final = 5
SECOND: Final = 1_000_000
TICKING: Final[dict[str, Any]] = {
    "ropewalk": 1,
    "name": "ticking",
    "nodes": [{"id": "a", "type": "noop"}],
    "triggers": [{"every": "1s", "name": f"t{n}", "overlap": "allow", "misfire": "all"} for n in range(SCHEDULES)],
}


async def serving(database: str, folder: Path) -> asyncio.subprocess.Process:
    arguments = ("-m", "ropewalk", "up", "--port", "0", "--json", "--db", database)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder), "XDG_CONFIG_HOME": str(folder)},
    )  # fmt: skip
    assert process.stdout is not None
    json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
    return process


async def fires(service: Service) -> dict[str, list[triggers.Fire]]:
    listed = await triggers.listed(service.store, "default")
    return {each.name: await triggers.fires(service.store, each.id, limit=1_000) for each in listed}


async def have_fired(service: Service, times: int) -> bool:
    return all(len(each) >= times for each in (await fires(service)).values())


async def test_two_servers_one_of_which_is_killed_fire_every_due_time_once(database: str, tmp_path: Path):
    servers: list[asyncio.subprocess.Process] = []
    async with open_service(Settings(db=database)) as service:
        await service.save(TICKING)
        try:
            servers = [await serving(database, tmp_path) for _ in range(2)]
            await until(lambda: have_fired(service, 3), "every schedule has fired three times")
            servers[0].send_signal(signal.SIGKILL)
            await until(lambda: have_fired(service, 6), "the other server goes on")
        finally:
            for each in servers:
                if each.returncode is None:
                    each.send_signal(signal.SIGKILL)
                await each.wait()
        found = await fires(service)

    for each in found.values():
        dues = sorted(moment_of(fire.key) for fire in each)
        assert dues == list(range(dues[0], dues[-1] + SECOND, SECOND))
        assert all(fire.execution is not None for fire in each)
        assert len({fire.execution for fire in each}) == len(each)
