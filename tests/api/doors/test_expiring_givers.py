"""What a key that expires gives ends with it, or is refused."""

from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.duration import HOUR, SECOND
from tests.api.house import House

ONE = {"ropewalk": 1, "name": "one", "nodes": []}


def subject(token: str) -> str:
    return f"key:{token.split('_')[1]}"


async def give(house: House, giver: str | None, to: str, role: str = "viewer", **more: Any) -> tuple[int, int]:
    """How a membership and a share of this one are answered."""
    workflow, body = await house.save(ONE), {"subject": to, "role": role}
    member = await house.ask("PUT", "/members", giver, json=body, **more)
    share = await house.ask("PUT", f"/workflow/definitions/{workflow}/acl", giver, json=body, **more)
    return member.status_code, share.status_code


@pytest.mark.parametrize("is_member", [False, True], ids=["at home", "as a member"])
async def test_an_expiring_key_gives_no_rights_without_end(house: House, is_member: bool):
    await house.workspace("elsewhere")
    ends = house.backend.store.now() + HOUR
    giver = await house.key(Role.ADMIN, "elsewhere" if is_member else "default", expires_at=ends)
    if is_member:
        assert await give(house, None, subject(giver), "admin") == (200, 200)
    here = {"params": {"workspaceId": "default"}}
    eternal, later = (
        await house.key(Role.VIEWER, "elsewhere"),
        await house.key(Role.VIEWER, "elsewhere", expires_at=ends + SECOND),
    )

    for each in ("user:ann", subject(eternal), subject(later), f"key:{7:032x}"):
        assert await give(house, giver, each, **here) == (403, 403)


async def test_an_expiring_key_gives_to_keys_that_end_no_later(house: House):
    await house.workspace("elsewhere")
    ends = house.backend.store.now() + HOUR
    giver, sooner = (
        await house.key(Role.ADMIN, expires_at=ends),
        await house.key(Role.VIEWER, "elsewhere", expires_at=ends),
    )

    assert await give(house, giver, subject(sooner)) == (200, 200)


async def test_an_expiring_key_leaves_a_member_with_less_or_with_nothing(house: House):
    giver = await house.key(Role.ADMIN, expires_at=house.backend.store.now() + HOUR)
    assert await give(house, None, "user:ann", "editor") == (200, 200)

    assert await give(house, giver, "user:ann", "viewer") == (200, 200)
    assert await give(house, giver, "user:ann", "editor") == (403, 403)
    assert (await house.ask("DELETE", "/members", giver, params={"subject": "user:ann"})).status_code == 200


async def test_the_refusal_says_when_the_giver_ends_and_what_to_do(house: House):
    giver = await house.key(Role.ADMIN, expires_at=house.backend.store.now() + HOUR)

    answer = await house.ask("PUT", "/members", giver, json={"subject": "user:ann", "role": "viewer"})

    assert "use a key that does not expire" in answer.json()["detail"]
