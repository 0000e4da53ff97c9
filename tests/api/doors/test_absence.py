"""What is foreign answers a caller word for word as what is absent: no caller learns by asking what exists."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import asdict

from ropewalk.access.rates import Limits
from ropewalk.access.rights import Role
from ropewalk.access.settings import AccessSettings
from tests.api.asking import ask
from tests.api.doors.test_permissions import GATED, SHAREABLE, Caller, Operation, Town, furnished, share
from tests.api.house import opened
from tests.api.samples import SAMPLES, About, World

pytestmark = pytest.mark.asyncio(loop_scope="module")
OTHER = {"ropewalk": 1, "name": "other", "nodes": [{"id": "a", "type": "noop"}]}
NOWHERE = "0198f00d-0000-7000-8000-00000000000"
ABSENT = World(
    *(f"{NOWHERE}{digit}" for digit in "12345"),
    fingerprint="f" * 16,
    done=f"{NOWHERE}6",
    done_run=f"{NOWHERE}7",
    key="f" * 32,
    etag='"none"',
    trigger=f"{NOWHERE}8",
    spare_trigger=f"{NOWHERE}9",
)
BY_ID = [each for each in GATED if SAMPLES[each.id].about is About.WORKFLOW]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    """A house in which each caller has a part, or none, but not in what the samples speak of."""
    path: Path = tmp_path_factory.mktemp("absence") / "ropewalk.db"
    async with opened(str(path), AccessSettings(limits=Limits(failures=None, per_actor=None))) as house:
        await house.workspace("elsewhere")
        world, other = await furnished(house), await house.save(OTHER)
        callers = [
            Caller("foreign", await house.key(Role.ADMIN, "elsewhere"), names_default=True),
            Caller("elsewhere", await house.key(Role.ADMIN, "elsewhere")),
        ]
        for role in SHAREABLE:
            token = await house.key(Role.RUNNER, "elsewhere")
            await share(house, (other,), token, role)
            callers.append(Caller(f"shared {role}", token, role, names_default=True))
        runner = await house.key(Role.RUNNER)
        await share(house, (other,), runner, Role.ADMIN)
        callers.append(Caller("runner", runner, names_default=True))
        yield Town(house, world, tuple(callers))


@pytest.mark.parametrize("operation", BY_ID, ids=lambda each: f"{each.id} {each.path} {each.content_type}")
async def test_what_is_not_theirs_answers_strangers_as_what_is_not_there(town: Town, operation: Operation):
    there = {each.name: await _answer(town, each, operation, town.world) for each in town.callers}

    assert there == {each.name: await _answer(town, each, operation, ABSENT) for each in town.callers}


async def _answer(town: Town, caller: Caller, operation: Operation, world: World) -> tuple[int, dict[str, str], Any]:
    """All that an answer says but the names of what was asked for, and the id of the answer itself."""
    sample = SAMPLES[operation.id]
    url = sample.url(operation.path, world)
    if caller.names_default:
        url += ("&" if "?" in url else "?") + "workspaceId=default"
    headers = [("Content-Type", operation.content_type), ("Authorization", f"Bearer {caller.token}")]
    headers += sample.headers(world).items()
    reply = await ask(town.house.app, operation.method, url, headers, sample.content(world))
    said = {name: value for name, value in reply.headers.items() if name != "content-length"}
    return reply.status, said, _without_names(reply.body, world)


def _without_names(body: bytes, world: World) -> Any:
    text = body.decode()
    for field, value in asdict(world).items():
        text = text.replace(value.strip('"'), f"<{field}>")
    told = json.loads(text)
    told.pop("instance", None)
    return told
