"""What a node gets of the credentials that its definition names, on a whole engine."""

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk import NodeContext, node
from ropewalk.core.errors import InvalidDefinition
from ropewalk.service import Service
from ropewalk.wiring import Settings, node_types, open_service

SECRET = "s3cret-canary-0815"
BASIC = {"username": "shop", "password": SECRET}


@node
async def tell(context: NodeContext) -> dict:
    found = await context.credential()
    return {"name": found and found.name, "password": found and found.values["password"]}


@node
async def tell_both(context: NodeContext) -> list:
    slots = [await context.credential(slot, "http.basic") for slot in ("from", "to", "other")]
    return [each and each.values["username"] for each in slots]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(Settings(db=str(tmp_path / "shop.db")), node_types([tell, tell_both])) as opened:
        yield opened


async def ran(service: Service, kind: str, **fields) -> tuple[str, object, str | None]:
    """How an execution of one node of this type ends."""
    version = await service.save({"name": "w", "nodes": [{"id": "a", "type": kind, **fields}]})
    execution = await service.start(version)
    ended = await service.ended(execution)
    return str(ended.state), ended.output, ended.error


async def test_a_node_gets_the_credential_it_names_and_cannot_tell_its_secret(service: Service):
    await service.credentials.create("shop", "http.basic", BASIC, [], "local")

    state, output, _ = await ran(service, "tell", credentials="shop")

    assert (state, output) == ("SUCCESS", {"a": {"name": "shop", "password": "***"}})


async def test_a_node_that_names_none_gets_none(service: Service):
    assert (await ran(service, "tell"))[1] == {"a": {"name": None, "password": None}}


async def test_a_node_names_several_by_slot(service: Service):
    await service.credentials.create("one", "http.basic", BASIC | {"username": "ann"}, [], "local")
    await service.credentials.create("two", "http.basic", BASIC | {"username": "bob"}, [], "local")

    assert (await ran(service, "tell_both", credentials={"from": "one", "to": "two"}))[1] == {"a": ["ann", "bob", None]}


async def test_a_credential_of_another_type_is_refused_by_the_run_of_a_function(service: Service):
    await service.credentials.create("one", "generic", {"value": SECRET}, [], "local")

    state, _, error = await ran(service, "tell_both", credentials={"from": "one"})

    assert state == "FAILED"
    assert "'one' is of the type generic, and the node takes http.basic" in str(error)


async def test_a_credential_that_is_not_there_is_refused_when_the_workflow_is_saved(service: Service):
    with pytest.raises(InvalidDefinition, match=r"nodes\[0\].credentials: there is no credential 'shop'"):
        await ran(service, "tell", credentials="shop")


async def test_a_credential_of_another_type_is_refused_when_the_workflow_is_saved(service: Service):
    await service.credentials.create("shop", "http.basic", BASIC, [], "local")

    with pytest.raises(InvalidDefinition, match=r"is of the type http\.basic, and the node takes smtp"):
        await ran(service, "email.send", credentials="shop", **{"with": {"to": "a@example.org"}})


async def test_a_credential_that_was_removed_meanwhile_fails_the_run_for_good(service: Service):
    await service.credentials.create("shop", "http.basic", BASIC, [], "local")
    version = await service.save({"name": "w", "nodes": [{"id": "a", "type": "tell", "credentials": "shop"}]})
    await service.credentials.remove("shop", "local")

    ended = await service.ended(await service.start(version))

    assert "there is no credential 'shop'" in str(ended.error)


async def test_the_first_credential_makes_a_key_file_for_its_owner_alone(service: Service, tmp_path: Path):
    assert not os.path.exists(tmp_path / "shop.db.key")

    await service.credentials.create("shop", "http.basic", BASIC, [], "local")

    assert stat.S_IMODE(os.stat(tmp_path / "shop.db.key").st_mode) == 0o600


@node
async def tell_host(context: NodeContext) -> str:
    found = await context.credential()
    return f"mail goes to {found and found.values['host']}"


async def test_what_is_no_secret_of_a_credential_is_not_masked(tmp_path: Path):
    async with open_service(Settings(db=str(tmp_path / "open.db")), node_types([tell_host])) as service:
        await service.credentials.create("mail", "smtp", {"host": "mail.example.org"}, [], "local")

        assert (await ran(service, "tell_host", credentials="mail"))[1] == {"a": "mail goes to mail.example.org"}
