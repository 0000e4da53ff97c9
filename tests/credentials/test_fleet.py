"""Credentials in a fleet: a worker that carries out a run of another worker's execution looks them up itself."""

from ropewalk import NodeContext, node
from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.access.secret_key import SecretKey
from ropewalk.api.app import create_app
from ropewalk.api.backend import Backend
from ropewalk.api.shapes.cursors import Cursors
from ropewalk.service import Service
from ropewalk.wiring import FleetSettings, Settings, node_types, open_service
from tests.api.house import House

KEY = "the same for every worker of this fleet, 1"
SECRET = "s3cret-canary-0815"


@node
async def tell(context: NodeContext) -> list:
    found = await context.credential()
    return [found and found.name, found and found.values["value"]]


def document(kind: str, pool: str) -> dict:
    return {"name": kind, "nodes": [{"id": "a", "type": kind, "pool": pool, "credentials": "key"}]}


def settings(database: str, pool: str = "default", key: str = KEY) -> Settings:
    return Settings(db=database, key=key, fleet=FleetSettings(pool=pool, notify=False))


async def ended(service: Service, pool: str) -> object:
    execution = await service.start(await service.save(document("tell", pool)))
    return await service.ended(execution)


async def test_a_worker_of_another_pool_gets_the_credential(database: str):
    async with (
        open_service(settings(database), node_types([tell])) as owner,
        open_service(settings(database, "gpu"), node_types([tell])),
    ):
        await owner.credentials.create("key", "generic", {"value": SECRET}, [], "local")

        came = await ended(owner, "gpu")

    assert came.output == {"a": ["key", "***"]}


async def test_a_worker_with_another_master_key_says_what_to_do(database: str):
    async with (
        open_service(settings(database), node_types([tell])) as owner,
        open_service(settings(database, "gpu", "another key than the others have, 2"), node_types([tell])),
    ):
        await owner.credentials.create("key", "generic", {"value": SECRET}, [], "local")

        came = await ended(owner, "gpu")

    assert "start it with the right ROPEWALK_KEY" in str(came.error)


async def test_an_external_runner_gets_no_secret_and_no_name(database: str):
    async with open_service(settings(database), node_types([tell])) as service:
        backend = await Backend.open(service.store, service.of, key=SecretKey(KEY))
        async with service.store.transaction() as tx:
            wanted = keys.Wanted(workspace="default", name="root", role=Role.ADMIN, is_root=True)
            _, root = await keys.make(tx, wanted, "test", service.store.now())
        house = House(create_app(backend, "test"), backend, service, root)
        await service.credentials.create("key", "generic", {"value": SECRET}, [], "local")
        await service.start(await service.save(document("tell", "outside")))

        lease = {"pool": "outside", "runnerId": "one", "waitSeconds": 10}
        answer = await house.ask("POST", "/workflow/runs/lease", json=lease)

    assert answer.json()["runs"][0]["type"] == "tell", answer.text
    assert SECRET not in answer.text
    assert '"key"' not in answer.text


def test_what_was_signed_with_the_key_from_before_is_taken_while_keys_are_rotated():
    old, both, new = Cursors("old"), Cursors("new", "old"), Cursors("new")
    cursor = old.write("list", ["a"])

    assert both.read("list", cursor) == ["a"]
    assert new.read("list", both.write("list", ["b"])) == ["b"]
