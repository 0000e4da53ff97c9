"""Node types over HTTP."""

from ropewalk.access.rights import Role
from tests.api.house import House


async def test_every_node_type_is_listed_once_by_name(house: House):
    names: list[str] = []
    cursor = ""
    while cursor is not None:
        page = (await house.ask("GET", f"/workflow/node-types?limit=5{cursor and f'&cursor={cursor}'}")).json()
        names += [each["name"] for each in page["items"]]
        cursor = page["next"]

    assert names == sorted(house.service.types.infos())


async def test_a_node_type_tells_its_ports_and_what_it_takes(house: House):
    viewer = await house.key(Role.VIEWER)

    found = (await house.ask("GET", "/workflow/node-types/if", viewer)).json()

    assert found["ports"] == ["true", "false"]
    assert "condition" in found["parameters"]["properties"]
    assert found["description"]


async def test_a_node_type_whose_parameters_make_its_ports_says_null(house: House):
    assert (await house.ask("GET", "/workflow/node-types/switch")).json()["ports"] is None


async def test_an_unknown_node_type_is_not_there(house: House):
    assert (await house.ask("GET", "/workflow/node-types/http.reqest")).status_code == 404


async def test_a_node_type_carries_what_palettes_and_forms_are_made_of(house: House):
    found = (await house.ask("GET", "/workflow/node-types/filter")).json()

    assert (found["title"], found["category"], found["icon"]) == ("Filter", "data", "filter")
    assert "where" in found["keywords"]
    assert list(found["portDescriptions"]) == found["ports"] == ["some", "none"]
    assert found["output"]["type"] == "array"
    items = found["parameters"]["properties"]["items"]
    assert (items["title"], items["description"], len(items["examples"])) == ("Items", "The list.", 1)
