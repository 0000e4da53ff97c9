"""A cursor leads on in the list it was made for: the same filters, in the same workspace."""

from typing import Any

import pytest

from tests.api.house import House
from tests.api.stories import fields

FAILING = {"ropewalk": 1, "name": "failing", "nodes": [{"id": "a", "type": "fail", "with": {"message": "no"}}]}

EARLY, LATE = "2026-01-01T00:00:00Z", "2255-01-01T00:00:00Z"


async def furnish(house: House, workspace: str) -> None:
    service = house.backend.service(workspace)
    version = await service.save(FAILING)
    await service.save({**FAILING, "name": "failing too"})
    for _ in range(2):
        await service.ended(await service.start(version))


LISTS: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "/workflow/executions",
        [{"workflowId": "failing"}, {"state": "FAILED"}, {"trigger": "MANUAL"}, {"from": EARLY}, {"to": LATE}],
    ),
    ("/workflow/dead-letters", [{"resolution": "PENDING"}, {"node": "a"}, {"workflowId": "failing"}]),
    ("/workflow/definitions", [{"name": "fail"}, {"archived": True}]),
    ("/activity", [{"verb": "start"}, {"actor": "local"}]),
    ("/keys", []),
    ("/workflow/node-types", []),
]  # fmt: skip


@pytest.mark.parametrize(("path", "filters"), LISTS)
async def test_a_cursor_is_good_for_its_filters_and_its_workspace_alone(
    house: House, path: str, filters: list[dict[str, Any]]
):
    await house.workspace("elsewhere")
    for workspace in ("default", "elsewhere"):
        await furnish(house, workspace)
    one = {"limit": 1}
    if path == "/keys":
        await house.ask("POST", "/keys", json={"name": "x", "role": "viewer"})
    cursors = [(await house.ask("GET", path, params={**one, **each})).json()["next"] for each in ({}, *filters)]

    for place, (cursor, made_with) in enumerate(zip(cursors, ({}, *filters), strict=True)):
        goes_on = await house.ask("GET", path, params={**one, **made_with, "cursor": cursor})
        assert goes_on.status_code == 200, (place, goes_on.text)
        others = [each for each in ({}, *filters) if each != made_with]
        for other in [*others, {**made_with, "workspaceId": "elsewhere"}]:
            refused = await house.ask("GET", path, params={**one, **other, "cursor": cursor})
            assert (refused.status_code, fields(refused)) == (422, ["query.cursor"]), (made_with, other)
