"""Secrets that are kept elsewhere: read when a node asks, and only where the settings let them be."""

import os
from pathlib import Path

import pytest

from ropewalk.core.errors import InvalidInput
from ropewalk.engines.references import LARGEST_FILE, References
from ropewalk.nodes.base import NodeFailure
from ropewalk.service.credentials import CredentialVerbs
from tests.credentials.conftest import verbs_on

SECRET = "s3cret-canary-0815"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "secrets"
    made.mkdir()
    (made / "token").write_text(f"{SECRET}\n", encoding="utf-8")
    return made


@pytest.fixture
def verbs(sqlite_store, folder: Path) -> CredentialVerbs:
    environment = {"PAY_TOKEN": SECRET, "PAY_EMPTY": "", "HOME": "/root"}
    return verbs_on(sqlite_store, references=References(("PAY_*",), (str(folder),), environment))


async def test_a_variable_is_read_when_a_node_asks_and_told_by_its_name(verbs: CredentialVerbs):
    made = await verbs.create("pay", "http.bearer", {"token": "env:PAY_TOKEN"}, [], "local")
    found = await verbs.stored.get("default", "pay")

    assert made["secrets"] == {"token": "env:PAY_TOKEN"}
    assert (found.values["token"], found.secrets) == (SECRET, (SECRET,))


async def test_a_file_is_read_anew_each_time(verbs: CredentialVerbs, folder: Path):
    await verbs.create("pay", "http.bearer", {"token": f"file:{folder}/token"}, [], "local")
    first = await verbs.stored.get("default", "pay")
    (folder / "token").write_text("an0ther", encoding="utf-8")

    assert (first.values["token"], (await verbs.stored.get("default", "pay")).values["token"]) == (SECRET, "an0ther")


@pytest.mark.parametrize("reference", [
    "env:HOME", "env:", "env:pay_token", "env:PAY", "file:", "file:token", "file:/etc/passwd", "file:{}/../outside",
    "file:{}-beside/token", "file:{}/link", "file:/proc/self/environ", "file:{}/\0",
])  # fmt: skip
async def test_what_the_settings_do_not_name_is_refused_when_it_is_set(
    verbs: CredentialVerbs, folder: Path, reference: str
):
    (folder.parent / "outside").write_text(SECRET, encoding="utf-8")
    os.symlink(folder.parent / "outside", folder / "link")

    with pytest.raises(InvalidInput, match=r"values\.token"):
        await verbs.create("pay", "http.bearer", {"token": reference.format(folder)}, [], "local")


@pytest.mark.parametrize(("reference", "says"), [
    ("env:PAY_ABSENT", "there is nothing"), ("env:PAY_EMPTY", "there is nothing"),
    ("file:{}/absent", "cannot be read"), ("file:{}", "cannot be read"), ("file:{}/large", "is larger than"),
    ("file:{}/bytes", "it is no text"), ("file:{}/empty", "there is nothing"),
])  # fmt: skip
async def test_a_reference_to_nothing_fails_the_run_for_good(
    verbs: CredentialVerbs, folder: Path, reference: str, says: str
):
    (folder / "large").write_text("x" * (LARGEST_FILE + 1), encoding="utf-8")
    (folder / "bytes").write_bytes(b"\xff\xfe")
    (folder / "empty").touch()
    await verbs.create("pay", "http.bearer", {"token": reference.format(folder)}, [], "local")

    with pytest.raises(NodeFailure, match=says) as caught:
        await verbs.stored.get("default", "pay")

    assert caught.value.error.type == "PERMANENT"


async def test_a_link_that_is_put_there_later_leads_nowhere(verbs: CredentialVerbs, folder: Path):
    await verbs.create("pay", "http.bearer", {"token": f"file:{folder}/token"}, [], "local")
    (folder.parent / "outside").write_text("0utside", encoding="utf-8")
    (folder / "token").unlink()
    os.symlink(folder.parent / "outside", folder / "token")

    with pytest.raises(NodeFailure, match=r"credentials\.files"):
        await verbs.stored.get("default", "pay")


async def test_what_a_setting_no_longer_names_is_read_no_more(verbs: CredentialVerbs, sqlite_store):
    await verbs.create("pay", "http.bearer", {"token": "env:PAY_TOKEN"}, [], "local")

    with pytest.raises(NodeFailure, match=r"credentials\.env"):
        await verbs_on(sqlite_store).stored.get("default", "pay")
