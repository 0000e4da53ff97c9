"""The queue of documents to be checked: one at a time of each size, and a bound for each caller."""

import asyncio
from itertools import islice
from typing import Any

from ropewalk.access.rights import Role
from ropewalk.api.doors.document_queue import MOST_LARGE, SMALL
from ropewalk.api.doors.request_bodies import LARGEST_DEFINITION
from tests.api.asking import PATIENCE
from tests.api.house import House

ONE: dict[str, Any] = {"ropewalk": 1, "name": "one", "nodes": []}
LARGE = ONE | {"description": "x" * SMALL}


async def validate(house: House, document: dict[str, Any], token: str) -> tuple[int, str | None]:
    answer = await house.ask("POST", "/workflow/definitions/validate", token, json=document)
    return answer.status_code, answer.headers.get("retry-after")


async def test_a_large_document_keeps_only_large_ones_waiting(house: House):
    viewer = await house.key(Role.VIEWER)
    async with house.backend.documents.turn("default", "user:ann", LARGEST_DEFINITION):
        waiting = asyncio.ensure_future(validate(house, LARGE, viewer))
        small = await validate(house, ONE, viewer)
        is_waiting = not waiting.done()

    assert (small, is_waiting, await waiting) == ((200, None), True, (200, None))


async def test_who_brings_too_many_large_ones_comes_back_later_and_others_wait_their_turn(house: House):
    eager, patient = await house.key(Role.VIEWER), await house.key(Role.VIEWER)
    async with house.backend.documents.turn("default", "user:ann", LARGEST_DEFINITION):
        brought = [asyncio.ensure_future(validate(house, LARGE, eager)) for _ in range(MOST_LARGE + 3)]
        refused = [await each for each in islice(asyncio.as_completed(brought, timeout=PATIENCE), 3)]
        other = asyncio.ensure_future(validate(house, LARGE, patient))

    assert refused == [(429, "1")] * 3
    assert sorted(await asyncio.gather(*brought)) == [(200, None)] * MOST_LARGE + refused
    assert await other == (200, None)


async def test_a_place_is_free_again_also_after_a_document_that_failed(house: House):
    viewer, bad = await house.key(Role.VIEWER), b'{"name": ' + b"x" * SMALL

    answers = [
        await house.ask("POST", "/workflow/definitions", house.root, content=bad, headers={"Content-Type": kind})
        for kind in ("application/json", "application/yaml")
        for _ in range(MOST_LARGE + 1)
    ]

    assert {each.status_code for each in answers} == {400, 422}
    assert await validate(house, LARGE, viewer) == (200, None)
