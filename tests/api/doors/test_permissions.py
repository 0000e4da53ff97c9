"""Every route × every role × {own, shared, foreign} answers as the one table says; made from it and the routes."""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fastapi.routing import APIRoute, APIWebSocketRoute, iter_route_contexts
from msgspec import Struct
from starlette.routing import Mount, Route, WebSocketRoute

from ropewalk.access import keys
from ropewalk.access.rates import Limits
from ropewalk.access.rights import BEYOND, EVERYTHING, RIGHTS, Right, Role
from ropewalk.access.settings import AccessSettings
from ropewalk.api.app import assemble
from ropewalk.api.doors.authorization import PUBLIC
from ropewalk.api.doors.fast_path import fast_routes
from ropewalk.api.nouns import hooks
from ropewalk.api.nouns.hooks import METHODS
from ropewalk.api.nouns.metrics import ServerMetrics
from ropewalk.api.routes import SocketAuthorization
from ropewalk.core.breaker import Breaker
from ropewalk.service.metrics import Sampler
from ropewalk.store import acl, breakers, dlq, runs
from ropewalk.telemetry.metrics import Metrics
from tests.api.asking import SOCKET, ask
from tests.api.house import House, opened
from tests.api.samples import A_CREDENTIAL, A_FILE, CONTENT, SAMPLES, TARGET, About, World

HOOKS = tuple(each.path.replace(":path", "") for each in hooks.routes())
OPEN_TO_ALL = {
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/healthz"),
    ("HEAD", "/healthz"),
    ("HEAD", "/readyz"),
    ("GET", "/readyz"),
    ("POST", "/api/v1/session"),
    *((method, path) for method in (*METHODS, "HEAD") for path in HOOKS),
}
"""A webhook has a check of its own, which `tests/api/nouns/test_hooks.py` tries out."""
SHAREABLE = (Role.VIEWER, Role.OPERATOR, Role.EDITOR, Role.ADMIN)
FAILING = {"ropewalk": 1, "name": "shared", "nodes": [{"id": "a", "type": "fail", "with": {"message": "as it should"}}]}
SPARE = {"ropewalk": 1, "name": "spare", "nodes": [{"id": "a", "type": "noop"}]}
ALLOWED = "allowed"
GIVING = {"createKey", "revokeKey", "putMember", "shareDefinition", "shareCredential", "unshareCredential"}
"""What these give or take, the caller has to have."""


class Operation(Struct, frozen=True):
    """A way in."""

    id: str
    method: str
    path: str
    right: Right | None
    content_type: str = "application/json; charset=utf-8"


def operations() -> Iterator[Operation]:
    """Every way in that the app has; one of a kind we do not know is an error."""
    app = assemble("test")
    assert not getattr(app.router, "_low_priority_routes", []), "files are served that this test does not look at"
    for context in iter_route_contexts(app.routes):
        route, path = context.original_route, str(context.path).replace(":path", "")
        match route:
            case APIWebSocketRoute():
                gates = [
                    each.dependency for each in route.dependencies if isinstance(each.dependency, SocketAuthorization)
                ]
                yield Operation(route.name, SOCKET, path, gates[0].right if gates else None)
            case APIRoute() | Route():
                name = getattr(route, "operation_id", None) or route.name
                yield from (Operation(name, each, path, getattr(route, "right", None)) for each in route.methods or ())
            case WebSocketRoute() | Mount() | _:
                yield Operation(str(getattr(route, "name", route)), SOCKET, path, None)
    for fast in fast_routes(app).values():
        name, method = str(fast.route.operation_id), min(fast.route.methods or ())
        yield Operation(name, method, fast.route.path, fast.right, "application/json")


EVERY = sorted(operations(), key=lambda each: (each.path, each.method))
GATED = [each for each in EVERY if (each.method, each.path) not in OPEN_TO_ALL]
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Caller(Struct, frozen=True):
    """A caller and its role: at home, or the one a workflow is shared in."""

    name: str
    token: str | None
    role: Role | None = None
    names_default: bool = False
    scope: Right | None = None


class Town(Struct, frozen=True):
    """A house with something in it, and every kind of caller."""

    house: House
    world: World
    callers: tuple[Caller, ...]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    """One for all the tests here: none of the samples takes away what another needs."""
    path: Path = tmp_path_factory.mktemp("permissions") / "ropewalk.db"
    async with opened(str(path), AccessSettings(limits=Limits(failures=None, per_actor=None))) as house:
        await house.workspace("elsewhere")
        world = await furnished(house)
        yield Town(house, world, tuple([each async for each in _callers(house, world)]))


async def furnished(house: House) -> World:
    workflow, spare, store = await house.save(FAILING), await house.save(SPARE), house.backend.store
    await house.ask("POST", "/workflow/files", content=CONTENT)
    failed, done = await _ended(house, workflow), await _ended(house, spare, A_FILE)
    letter = (await dlq.listed(store, "default"))[0]
    run = (await runs.listed(store, done))[0].id
    key = (await house.key(Role.VIEWER)).split("_")[1]
    etag = (await house.ask("GET", f"/workflow/definitions/{workflow}")).headers["etag"]
    async with store.transaction() as tx:
        await breakers.put(tx, "default", TARGET, Breaker())
    await house.service.credentials.create(A_CREDENTIAL, "generic", {"value": "sample"}, [], "test")
    made = [await house.service.triggers.create(workflow, {"every": "1h"}, "test") for _ in range(2)]
    triggers = [each["id"] for each in made]
    house.backend.metrics = ServerMetrics(Metrics(), Sampler(store))
    about = (letter.run, letter.id, letter.fingerprint)
    return World(workflow, spare, failed, *about, done, run, key, etag, *triggers)


async def _ended(house: House, workflow: str, given: Any = None) -> str:
    """An execution that is over."""
    execution = await house.service.start(await house.service.engine.versions.version(workflow, 1), given)
    await house.service.ended(execution)
    return execution


async def _callers(house: House, world: World) -> AsyncIterator[Caller]:
    yield Caller("root", house.root)
    yield Caller("anonymous", None)
    yield Caller("revoked", await _revoked(house))
    yield Caller("expired", await house.key(Role.ADMIN, expires_at=1))
    for role in Role:
        yield Caller(f"own {role}", await house.key(role), role)
        yield Caller(f"foreign {role}", await house.key(role, "elsewhere"), role, names_default=True)
        yield Caller(f"elsewhere {role}", await house.key(role, "elsewhere"), role)
    for right in sorted(RIGHTS[Role.ADMIN]):
        yield Caller(f"scoped {right}", await house.key(Role.ADMIN, scopes=(right,)), scope=right)
    for right in sorted(EVERYTHING):
        token = await house.key(Role.ADMIN, scopes=(right,), is_root=True)
        yield Caller(f"scoped root {right}", token, scope=right)
    for role in SHAREABLE:
        token = await house.key(Role.RUNNER, "elsewhere")
        await share(house, (world.workflow, world.spare), token, role)
        yield Caller(f"shared {role}", token, role, names_default=True)


async def _revoked(house: House) -> str:
    token = await house.key(Role.ADMIN)
    answer = await house.ask("DELETE", f"/keys/{token.split('_')[1]}")
    assert answer.status_code == 200
    return token


async def share(house: House, workflows: tuple[str, ...], token: str, role: Role) -> None:
    store, subject = house.backend.store, f"{keys.SUBJECT}{token.split('_')[1]}"
    async with store.transaction() as tx:
        for workflow in workflows:
            await acl.put(tx, acl.Share("default", workflow, subject, role, store.now(), "test"))


def expected(caller: Caller, right: Right, about: About, *, is_giving: bool = False) -> object:
    """What the table says; `elsewhere` asks at home for the ids of another workspace."""
    kind, rights = caller.name.partition(" ")[0], RIGHTS[caller.role] if caller.role else frozenset[Right]()
    if kind in ("anonymous", "revoked", "expired"):
        return 401
    if kind == "root" or right is Right.COME_IN:
        return ALLOWED
    match kind:
        case "scoped":
            return ALLOWED if right is caller.scope and not is_giving else 403
        case "own":
            return ALLOWED if right in rights else 403
        case "elsewhere":
            return 403 if right not in rights else 404
        case "shared" if about is About.WORKFLOW:
            return ALLOWED if right in rights else 403
        case "shared" if about is About.PART and right is Right.READ:
            return ALLOWED
    return 404


@pytest.mark.parametrize("operation", GATED, ids=lambda each: f"{each.id} {each.path} {each.content_type}")
async def test_every_route_answers_every_caller_as_the_table_says(town: Town, operation: Operation):
    assert operation.right is not None, "it names no right"
    assert operation.id in SAMPLES, "it has no sample: put one into samples.py"
    sample = SAMPLES[operation.id]
    asked = [each for each in town.callers if _is_asked(each, operation)]

    answers = {each.name: await _judged(town, each, operation) for each in asked}

    is_giving = operation.id in GIVING
    assert answers == {each.name: expected(each, operation.right, sample.about, is_giving=is_giving) for each in asked}


def _is_asked(caller: Caller, operation: Operation) -> bool:
    """Who asks at home for what is elsewhere has to name it: there must be an id of it in the path."""
    is_by_id = SAMPLES[operation.id].about is About.WORKFLOW and "{" in operation.path
    return is_by_id or not caller.name.startswith("elsewhere")


async def _judged(town: Town, caller: Caller, operation: Operation) -> object:
    status = await _status(town, caller, operation)
    return ALLOWED if status < 500 and status not in (401, 403, 404) else status


async def _status(town: Town, caller: Caller, operation: Operation) -> int:
    sample, world = SAMPLES[operation.id], town.world
    if sample.uses_up_letters:
        await _ended(town.house, world.workflow)
    url = sample.url(operation.path, world)
    if caller.names_default:
        url += ("&" if "?" in url else "?") + "workspaceId=default"
    headers = [("Content-Type", operation.content_type), *sample.headers(world).items()]
    if caller.token is not None:
        headers.append(("Authorization", f"Bearer {caller.token}"))
    return (await ask(town.house.app, operation.method, url, headers, sample.content(world))).status


@pytest.mark.parametrize("operation", EVERY, ids=lambda each: f"{each.id} {each.path} {each.method}")
async def test_only_the_routes_of_a_short_list_answer_without_a_token(town: Town, operation: Operation):
    url = _filled(operation.path, town.world)

    reply = await ask(town.house.app, operation.method, url, [])

    assert (reply.status != 401) is ((operation.method, operation.path) in OPEN_TO_ALL)


def _filled(path: str, world: World) -> str:
    sample: Any = next(iter(SAMPLES.values()))
    return str(sample.url(path, world))


async def test_the_public_operations_are_the_ones_the_gate_names():
    is_open = {each.id for each in EVERY if (each.method, each.path) in OPEN_TO_ALL}

    assert is_open == PUBLIC


async def test_no_sample_is_for_a_route_that_is_gone():
    assert set(SAMPLES) <= {each.id for each in EVERY}


async def test_every_role_is_in_the_table_and_only_root_goes_beyond_a_workspace():
    table: Mapping[Role, frozenset[Right]] = RIGHTS

    assert set(table) == set(Role)
    assert not any(rights & BEYOND for rights in table.values())
