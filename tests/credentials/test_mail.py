"""`email.send` with a credential, by a real mail server on this machine."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from ropewalk.service import Service
from ropewalk.wiring import Settings, open_service
from tests.credentials.test_nodes import ran

SECRET = "s3cret-canary-0815"
LETTER = {"to": "ada@example.org", "subject": "Thank you", "text": "…"}


class Mailbox:
    """Lets in who knows the password, and keeps what came."""

    def __init__(self) -> None:
        self.senders: list[str] = []

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 -- aiosmtpd's name
        if not session.authenticated:
            return "530 log in first"
        self.senders.append(envelope.mail_from)
        return "250 OK"

    def let_in(self, server, session, envelope, mechanism, data) -> AuthResult:
        return AuthResult(success=(data.login, data.password) == (b"shop", SECRET.encode()))


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
async def values(mailbox: Mailbox) -> AsyncIterator[dict]:
    def session() -> SMTP:
        return SMTP(mailbox, hostname="test", authenticator=mailbox.let_in, auth_require_tls=False)

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield {"host": "127.0.0.1", "port": port, "tls": "none", "username": "shop", "password": SECRET}
    server.close()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with open_service(Settings(db=str(tmp_path / "shop.db"), allow_hosts=("127.0.0.1",))) as opened:
        yield opened


async def test_mail_goes_by_the_server_and_from_the_sender_of_the_credential(service: Service, mailbox, values):
    await service.credentials.create("mail", "smtp", values | {"sender": "shop@example.org"}, ["127.0.0.1"], "local")

    state, output, _ = await ran(service, "email.send", credentials="mail", **{"with": LETTER})

    assert state == "SUCCESS"
    assert output["a"]["accepted"] == ["ada@example.org"]
    assert mailbox.senders == ["shop@example.org"]


@pytest.mark.parametrize(("more", "hosts", "says"), [
    ({"smtp": {"host": "mail.example.org"}}, [], "with.smtp: the credential names the server"),
    ({}, ["mail.example.org"], "is for mail.example.org, and not for 127.0.0.1"),
])  # fmt: skip
async def test_a_server_that_the_credential_is_not_for_gets_nothing(
    service: Service, mailbox, values, more, hosts, says
):
    await service.credentials.create("mail", "smtp", values | {"sender": "shop@example.org"}, hosts, "local")

    state, _, error = await ran(service, "email.send", credentials="mail", **{"with": LETTER | more})

    assert (state, mailbox.senders) == ("FAILED", [])
    assert says in str(error)
