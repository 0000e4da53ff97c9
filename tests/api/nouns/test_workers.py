"""Workers over HTTP: those who run the whole see who is there and alive."""

from ropewalk.access.rights import Role
from tests.api.stories import Town, town_on
from tests.store.samples import register


async def test_the_worker_of_a_file_is_alive_and_says_what_it_is(town: Town):
    (found,) = (await town.get("/workers"))["items"]

    assert (found["id"], found["isAlive"]) == (town.backend.store.worker, True)
    assert found["version"]
    assert found["pool"] == "default"


async def test_of_a_fleet_those_are_alive_who_were_heard_of(database: str):
    async with town_on(database) as town:
        store = town.backend.store
        async with store.transaction() as tx:
            await register(tx, "silent", store.now() - 60_000_000, slots=5)
            await register(tx, "gone", 0, slots=5)

        found = {each["id"]: each for each in (await town.get("/workers"))["items"]}

        assert {name: each["isAlive"] for name, each in found.items()} == {
            store.worker: True,
            "silent": False,
            "gone": False,
        }
        assert found["silent"]["silence"] >= 60_000_000
        assert (found["gone"]["heartbeatAt"], found["gone"]["silence"]) == (None, None)


async def test_workers_are_shown_to_no_workspace(town: Town):
    admin = await town.key(Role.ADMIN)

    assert (await town.ask("GET", "/workers", admin)).status_code == 403
