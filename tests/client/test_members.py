"""Members of a workspace by the client."""

import pytest

from ropewalk.client import AsyncClient
from ropewalk.core.errors import Forbidden, Invalid
from tests.client.servers import Served

STRANGE = "user:https://id.example/a b?c=d&e#é|7"
"""What issuers may call a subject."""


@pytest.mark.parametrize("subject", ["user:ann", STRANGE])
async def test_a_subject_gets_a_role_another_one_and_none(client: AsyncClient, subject: str):
    first = await client.put_member(subject, "viewer")
    second = await client.put_member(subject, "editor")
    listed = [(each["subject"], each["role"]) async for each in client.members()]
    gone = [(await client.remove_member(subject))["changed"] for _ in range(2)]

    assert (first["role"], second["role"]) == ("viewer", "editor")
    assert listed == [(subject, "editor")]
    assert gone == [True, False]
    assert [each async for each in client.members()] == []


async def test_a_caller_gives_no_role_beyond_their_own(server: Served, client: AsyncClient):
    made = await client.create_key("clerk", "admin", scopes=["administer", "read"])
    async with AsyncClient(server.url, made["token"]) as clerk:
        await clerk.put_member("user:ann", "viewer")

        with pytest.raises(Forbidden):
            await clerk.put_member("user:ann", "operator")


async def test_a_subject_that_is_none_is_refused_with_the_field(client: AsyncClient):
    with pytest.raises(Invalid) as refused:
        await client.put_member("ann", "viewer")

    assert refused.value.problems[0].path == ("subject",)
