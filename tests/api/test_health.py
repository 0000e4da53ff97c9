"""Whether a server lives, and whether it can do its work."""

import pytest

from ropewalk.store.sqlite import store as embedded
from tests.api.house import House


async def asked(house: House, path: str) -> tuple[int, bool]:
    """The status, and whether there is a word of when to come back."""
    async with house.client(None) as client:
        answer = await client.get(path)
    return answer.status_code, "retry-after" in answer.headers


async def test_a_server_whose_store_cannot_be_written_lives_and_is_not_ready(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(embedded, "MARK_EVERY", 0)
    connection = house.service.store._connection
    before = await asked(house, "/readyz")
    connection.execute("pragma query_only = on")
    meanwhile = [await asked(house, path) for path in ("/readyz", "/healthz")]
    connection.execute("pragma query_only = off")
    after = await asked(house, "/readyz")

    assert (before, after) == ((200, False), (200, False))
    assert meanwhile == [(503, True), (200, False)]
