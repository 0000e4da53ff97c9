"""Whether a server lives, and whether it can do its work."""

from pathlib import Path

import httpx2
import pytest
from fastapi.routing import iter_route_contexts

from ropewalk.api.app import create_health_app
from ropewalk.store.sqlite import store as embedded
from tests.api.asking import ask as ask_app
from tests.api.house import House, opened
from tests.api.servers import up
from tests.polling import until
from tests.postgres import ask

WORKFLOW = {"ropewalk": 1, "name": "one", "nodes": []}
NO_WORKER_JOINS = """
create function no_worker_joins() returns trigger language plpgsql as
$$ begin raise exception 'cannot execute INSERT in a read-only transaction' using errcode = '25006'; end $$;
create trigger no_worker_joins before insert on worker for each row execute function no_worker_joins()
"""


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


async def test_a_server_that_has_lost_its_lease_is_not_ready_before_it_is_back(database: str):
    async with opened(database) as house:
        workflow = await house.save(WORKFLOW)
        ready = [(await asked(house, "/readyz"))[0]]
        for statement in NO_WORKER_JOINS.split(";\n"):
            await ask(database, statement)
        await ask(database, "update worker set epoch = epoch + 1")
        refused = await house.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})
        ready += [(await asked(house, "/readyz"))[0], (await asked(house, "/healthz"))[0]]
        await ask(database, "drop trigger no_worker_joins on worker")
        await ask(database, "drop function no_worker_joins")

        async def is_back() -> bool:
            return (await asked(house, "/readyz"))[0] == 200

        await until(is_back, "the server is ready again")
        accepted = await house.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})

    assert ready == [200, 503, 200]
    assert (refused.status_code, accepted.status_code) == (503, 202)


async def test_a_head_request_is_answered_as_a_get_without_its_body(tmp_path: Path):
    with up(tmp_path) as server:
        answers = [
            httpx2.request(method, f"{server.url}{path}")
            for path in ("/healthz", "/readyz")
            for method in ("GET", "HEAD")
        ]

    assert [each.status_code for each in answers] == [200] * 4
    for got, head in zip(answers[::2], answers[1::2], strict=True):
        assert (head.content, head.headers["content-length"]) == (b"", got.headers["content-length"])


async def test_a_worker_answers_health_and_figures_and_nothing_else(house: House):
    app = create_health_app(house.backend, "test")
    paths = {str(context.path) for context in iter_route_contexts(app.routes)}

    assert paths == {"/healthz", "/readyz", "/metrics"}
    assert [(await ask_app(app, "GET", path, [])).status for path in sorted(paths)] == [200, 401, 200]
    assert (await ask_app(app, "GET", "/api/v1/me", [("Authorization", f"Bearer {house.root}")])).status == 404


async def test_a_process_that_leaves_lives_and_is_not_ready(house: House):
    house.backend.is_leaving = True

    assert [await asked(house, path) for path in ("/healthz", "/readyz")] == [(200, False), (503, True)]
