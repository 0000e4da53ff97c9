"""Every built-in type has an example that does what it says."""

import asyncio
import json
from pathlib import Path

import pytest
from aiosmtpd.handlers import Sink
from aiosmtpd.smtp import SMTP

from ropewalk.core.definition import parse_definition
from ropewalk.documents import read_document
from ropewalk.local import LocalEngine
from ropewalk.nodes.base import Registry
from ropewalk.nodes.builtin import BUILTIN
from ropewalk.nodes.functions import Functions
from ropewalk.wiring import Settings, open_service
from tests.s3 import KEY, make_bucket

from .services import MODELS, SERVICES

FOLDER = Path(__file__).parents[2] / "examples" / "nodes"
FILES = sorted(FOLDER.glob("*.yaml"))
GIVES = "# gives: "


def price(sku, count):
    return round({"pen": 12.95}[sku] * count, 2)


@pytest.fixture
async def local(tmp_path):
    """An engine that may reach this machine, and knows the function that the examples call."""
    functions = Functions()
    functions.register(price)
    root = tmp_path / "files"
    root.mkdir()
    settings = Settings(
        db=str(tmp_path / "test.db"), is_thrown_away=True, allow_hosts=("127.0.0.1",), files_root=str(root)
    )
    async with open_service(settings, Registry.builtin(), functions) as service:
        (root / service.workspace).mkdir()
        (root / service.workspace / "shop.db").touch()
        await service.credentials.create("shop", "sqlite", {"path": "shop.db"}, [], "local")
        yield LocalEngine(service)


@pytest.fixture
async def shop(site):
    site.answer("/orders", text='{"total": 129.5}', content_type="application/json")
    return {"shop": site.url}


@pytest.fixture
async def mail():
    def session():
        return SMTP(Sink(), hostname="test")

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0)
    yield {"server": {"host": "127.0.0.1", "port": server.sockets[0].getsockname()[1]}}
    server.close()
    await server.wait_closed()


async def keep_credential(local, site, service):
    """The credential that an example names, for a service that answers on this machine."""
    service.serve(site)
    await local.service.credentials.create("service", service.credential, service.at(site.url), [], "local")


async def open_bucket(local, s3):
    """The bucket and the credential that the examples of S3 name."""
    await make_bucket(s3)
    await local.service.credentials.create("bucket", "aws", {**KEY, "endpoint": s3}, [], "local")


async def signal(local, execution):
    await execution.signal("go", {"by": "Ada"})


async def approve(local, execution):
    async for each in execution.events():
        if each["type"] == "RunWaiting":
            return await execution.approve("ask")
    raise AssertionError("it asked no person")


async def nothing(local, execution):
    """Most examples need no help."""


CALLED = {"subworkflow": ["limit"], "workflow.start": ["limit"], "execution.cancel": ["wait"]}
HELP = {"wait": signal, "approval": approve}


def expected(file):
    [line] = [line for line in file.read_text().splitlines() if line.startswith(GIVES)]
    return json.loads(line.removeprefix(GIVES))


def test_every_builtin_type_has_an_example():
    assert [file.stem for file in FILES] == sorted(BUILTIN)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_uses_the_type_that_it_is_named_after(file):
    definition = parse_definition(read_document(file).value, Registry.builtin().infos())

    assert definition.name == file.stem
    assert file.stem in [node["type"] for node in definition.nodes]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_an_example_gives_what_it_says(local, site, s3, shop, mail, file):
    given = {"http.request": shop, "email.send": mail}.get(file.stem)
    if file.stem in SERVICES | MODELS:
        await keep_credential(local, site, (SERVICES | MODELS)[file.stem])
    if file.stem.startswith("s3."):
        await open_bucket(local, s3)
    for called in CALLED.get(file.stem, ()):
        await local.service.save(read_document(FOLDER / f"{called}.yaml").value)

    execution = await local.start(read_document(file).value, vars=given)
    await HELP.get(file.stem, nothing)(local, execution)

    assert await execution.result() == expected(file)
