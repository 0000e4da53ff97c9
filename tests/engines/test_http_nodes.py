"""`http.request` on a whole engine: credentials and files of its store, and nothing of a secret in what is recorded."""

import base64
import json

import pytest
from aiohttp import web

from ropewalk.nodes.base import Registry
from ropewalk.wiring import Settings, open_service

SECRET = "s3cret-canary-4711"
CONTENT = bytes(range(256)) * 8_192  # 2 MiB
LOGIN = f"Basic {base64.b64encode(f'shop:{SECRET}'.encode()).decode()}"


@pytest.fixture
async def service(tmp_path):
    settings = Settings(db=str(tmp_path / "shop.db"), allow_hosts=("127.0.0.1",))
    async with open_service(settings, Registry.builtin()) as opened:
        await opened.credentials.create(
            "shop", "http.basic", {"username": "shop", "password": SECRET}, ["127.0.0.1"], "local"
        )
        yield opened


@pytest.fixture
async def shop():
    """A server that asks for a login, repeats it in every answer, and keeps what is sent."""
    kept = {}

    async def answer(request):
        told = {"you": request.headers.get("Authorization"), "at": str(request.url)}
        if request.headers.get("Authorization") != LOGIN:
            return web.json_response(told, status=401)
        if request.path == "/report.bin":
            return web.Response(body=CONTENT, headers={"X-Login": LOGIN})
        kept["body"] = b"".join([chunk async for chunk in request.content.iter_any()])
        return web.json_response(told, status=int(request.query.get("status", "200")))

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", kept
    await runner.cleanup()


async def recorded(service, *nodes, edges=()):
    """How an execution ends, and all that its log tells."""
    version = await service.save({"name": "w", "nodes": list(nodes), "edges": list(edges)})
    execution = await service.start(version)
    ended = await service.ended(execution)
    events = [repr(event) async for _, event in service.follow(execution)]
    return ended, "".join(events)


async def test_a_file_goes_from_server_to_server_with_a_credential(service, shop):
    url, kept = shop
    get = {"url": f"{url}/report.bin", "responseType": "file"}
    put = {"method": "PUT", "url": f"{url}/copy", "file": "{{ nodes.get.output.body }}"}

    ended, told = await recorded(
        service,
        {"id": "get", "type": "http.request", "credentials": "shop", "with": get},
        {"id": "put", "type": "http.request", "credentials": "shop", "with": put},
        edges=[{"from": "get", "to": "put"}],
    )

    assert str(ended.state) == "SUCCESS"
    assert kept["body"] == CONTENT
    assert SECRET not in told + json.dumps(ended.output)
    assert LOGIN.split()[1] not in told


@pytest.mark.parametrize("path", ["/x?status=403", "/x?status=503"])
async def test_a_failure_tells_nothing_of_the_credential(service, shop, path):
    url, _ = shop

    ended, told = await recorded(
        service,
        {"id": "a", "type": "http.request", "credentials": "shop", "with": {"url": url + path},
         "retry": {"maxAttempts": 1}},
    )  # fmt: skip

    assert str(ended.state) == "FAILED"
    assert "answered" in ended.error
    assert SECRET not in told + ended.error
    assert LOGIN.split()[1] not in told


async def test_a_credential_that_is_bound_to_other_hosts_is_sent_nowhere(service, shop):
    url, kept = shop
    await service.credentials.change("shop", None, ["api.shop.example"], "local")

    ended, _ = await recorded(
        service, {"id": "a", "type": "http.request", "credentials": "shop", "with": {"url": f"{url}/x"}}
    )

    assert str(ended.state) == "FAILED"
    assert "is for api.shop.example" in ended.error
    assert kept == {}
