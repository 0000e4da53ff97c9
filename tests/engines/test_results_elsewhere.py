"""The end of an execution that another worker owns is heard by notice."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ropewalk.engines import watching
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service import Service
from ropewalk.store.postgres.notices import ANY, payloads
from ropewalk.wiring import Settings, open_service
from tests.polling import until

ONE = {
    "ropewalk": 1,
    "name": "one",
    "nodes": [{"id": "a", "type": "set", "with": {"values": {"n": "{{ input }}"}}}],
    "output": "{{ nodes.a.output.n }}",
}


@pytest.fixture
async def accepting(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """A server that accepts only, beside a worker that executes; nothing is heard by looking now and then."""
    monkeypatch.setattr(watching, "EVERY", 600.0)
    settings = Settings(db=database, worker=WorkerSettings(claims=False))
    async with open_service(Settings(db=database)) as worker, open_service(settings) as service:
        # A worker hints only once it knows of another.
        await until(lambda: worker.engine.offers.has_others, "the worker knows of the server")
        yield service


async def test_a_result_on_another_worker_is_heard_by_notice(accepting: Service):
    version = await accepting.save(ONE)

    for number in range(20):
        execution = await accepting.start(version, number)
        ended = await asyncio.wait_for(accepting.ended(execution), 10)
        assert ended.output == number


async def test_the_ends_of_many_are_read_together(accepting: Service, monkeypatch: pytest.MonkeyPatch):
    version = await accepting.save(ONE)
    asked: list[str] = []
    fetch = accepting.store.fetch

    async def noted(name: str, *arguments: Any) -> Any:
        asked.append(name)
        return await fetch(name, *arguments)

    monkeypatch.setattr(accepting.store, "fetch", noted)
    executions = await asyncio.gather(*[accepting.start(version, number) for number in range(300)])
    ended = await asyncio.wait_for(asyncio.gather(*map(accepting.ended, executions)), 30)

    assert [each.output for each in ended] == list(range(300))
    assert asked.count("last_entries") < 100
    assert "log_entries" not in asked


def test_many_topics_go_out_in_several_notifications_and_a_flood_in_one():
    topics = [f"019a8b0c-3f1e-7c4e-9d53-{number:012}" for number in range(1_000)]

    parts = payloads(topics)

    assert "\n".join(parts).split("\n") == topics
    assert 1 < len(parts) <= 20
    assert max(map(len, parts)) < 8_000
    assert payloads(topics * 20) == [ANY]
    assert payloads(["x" * 10_000]) == [ANY]
    assert payloads(["queue"]) == ["queue"]
