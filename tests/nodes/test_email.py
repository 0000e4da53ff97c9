"""`email.send` against a real SMTP server."""

import asyncio
import base64
from email import message_from_bytes
from email.policy import default

import msgspec
import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope

from ropewalk.core.errors import ErrorType, InvalidInput
from ropewalk.core.state import ExecutionState
from ropewalk.nodes.base import Facilities, NodeFailure
from ropewalk.nodes.network import NetworkPolicy
from ropewalk.nodes.smtp import SmtpSettings
from ropewalk.service import reading
from ropewalk.wiring import MailSettings, Settings, open_service

from .conftest import context_of


class Mailbox:
    """What a server does with mail: keeps it, or says what it was told to say."""

    def __init__(self):
        self.envelopes: list[Envelope] = []
        self.replies: dict[str, str] = {}

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 -- aiosmtpd's name
        reply = self.replies.get(address, "250 OK")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 -- aiosmtpd's name
        self.envelopes.append(envelope)
        return self.replies.get("DATA", "250 OK")

    def message(self):
        return message_from_bytes(self.envelopes[-1].content, policy=default)

    def authenticate(self, server, session, envelope, mechanism, credentials):
        is_known = credentials.password == b"s3cret-password" and "AUTH" not in self.replies
        return AuthResult(success=is_known, handled=False, message=self.replies.get("AUTH"))


@pytest.fixture
def mailbox():
    return Mailbox()


@pytest.fixture
async def smtp(mailbox):
    """The settings of a running server."""

    def session():
        return SMTP(
            mailbox, hostname="test", authenticator=mailbox.authenticate, auth_require_tls=False, enable_SMTPUTF8=True
        )

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0)
    yield {"host": "127.0.0.1", "port": server.sockets[0].getsockname()[1], "tls": "none"}
    server.close()
    await server.wait_closed()


@pytest.fixture
def send(run, smtp):
    async def send_mail(**inputs):
        given = {"to": "ada@example.org", "from": "Shop <shop@example.com>", "smtp": smtp} | inputs
        return (await run("email.send", given)).value

    return send_mail


@pytest.fixture
def failure(send):
    async def fail_to_send(**inputs):
        with pytest.raises(NodeFailure) as caught:
            await send(**inputs)
        return caught.value.error

    return fail_to_send


async def test_a_message_arrives_with_all_its_parts(send, mailbox):
    output = await send(
        to=["Ada <ada@example.org>", "bob@example.org"],
        cc="eve@example.org",
        bcc="boss@example.org",
        subject="Grüße",
        text="Hallo",
        html="<p>Hallo</p>",
    )

    everyone = ["ada@example.org", "bob@example.org", "eve@example.org", "boss@example.org"]
    message = mailbox.message()
    assert mailbox.envelopes[0].rcpt_tos == output["accepted"] == everyone
    assert mailbox.envelopes[0].mail_from == "shop@example.com"
    assert (message["To"], message["Cc"], message["Bcc"]) == (
        "Ada <ada@example.org>, bob@example.org",
        "eve@example.org",
        None,
    )
    assert (message["Subject"], message["From"]) == ("Grüße", "Shop <shop@example.com>")
    assert message["Date"] == "Fri, 15 Jan 2027 08:00:00 +0000"
    assert message.get_body(("plain",)).get_content().strip() == "Hallo"
    assert message.get_body(("html",)).get_content().strip() == "<p>Hallo</p>"


@pytest.mark.parametrize(
    ("inputs", "kind"), [({"html": "<p>x</p>"}, "text/html"), ({"text": "x"}, "text/plain"), ({}, "text/plain")]
)
async def test_a_message_may_have_one_form_only(send, mailbox, inputs, kind):
    await send(**inputs)

    assert mailbox.message().get_content_type() == kind


async def test_every_attempt_sends_the_same_message_id(run, smtp, mailbox):
    inputs = {"to": "ada@example.org", "from": "shop@example.com", "smtp": smtp}

    outputs = [await run("email.send", inputs, attempt=attempt) for attempt in (1, 2)]
    other = await run("email.send", inputs, idempotency_key="other work")

    assert outputs[0] == outputs[1] != other
    assert mailbox.message()["Message-ID"] == other.value["messageId"]


async def test_the_workers_own_server_and_sender_are_the_default(registry, smtp, mailbox):
    facilities = Facilities(NetworkPolicy(allow=("127.0.0.1",)), smtp=SmtpSettings(**smtp), sender="rope@example.com")
    node_type = registry.get("email.send")

    await node_type.run(node_type.accept({"to": "ada@example.org"}), context_of(facilities))

    assert mailbox.envelopes[0].mail_from == "rope@example.com"


async def test_mail_goes_by_the_server_that_the_settings_name(smtp, mailbox, tmp_path):
    said = {f"ROPEWALK_SMTP_{name.upper()}": str(value) for name, value in smtp.items()}
    more = {"ROPEWALK_SMTP_SENDER": "rope@example.com", "ROPEWALK_ALLOW_HOSTS": "127.0.0.1"}
    settings = Settings.from_environment({**said, **more}, db=str(tmp_path / "ropewalk.db"))
    node = {"id": "tell", "type": "email.send", "with": {"to": "ada@example.org", "text": "Hello"}}

    async with open_service(settings) as service:
        execution = await service.start(await service.save({"name": "tell", "nodes": [node]}))
        ended = await service.ended(execution)

    assert ended.state is ExecutionState.SUCCESS
    assert mailbox.envelopes[0].mail_from == "rope@example.com"


@pytest.mark.parametrize(
    ("word", "value"), [("smtp.tls", "ssl"), ("smtp.host", "h" * 300), ("smtp.sender", "nobody at all")]
)
async def test_a_mail_server_that_makes_no_sense_is_refused_by_its_setting(word, value, tmp_path):
    given = {"smtp.host": "mail.example.com", word: value}
    said = {f"ROPEWALK_{name.upper().replace('.', '_')}": text for name, text in given.items()}

    with pytest.raises(InvalidInput, match=word):
        async with open_service(Settings.from_environment(said, db=str(tmp_path / "ropewalk.db"))):
            pass

    assert list(tmp_path.iterdir()) == []


async def test_whom_the_server_refuses_is_told_while_the_others_get_the_message(send, mailbox):
    mailbox.replies["bob@example.org"] = "550 no such user"

    output = await send(to=["ada@example.org", "bob@example.org"])

    assert output["accepted"] == ["ada@example.org"]
    assert output["refused"] == {"bob@example.org": "550 no such user"}


@pytest.mark.parametrize(
    ("place", "reply", "kind"),
    [
        ("ada@example.org", "450 mailbox busy", ErrorType.TRANSIENT),
        ("ada@example.org", "550 no such user", ErrorType.PERMANENT),
        ("DATA", "451 try later", ErrorType.TRANSIENT),
        ("DATA", "554 looks like spam", ErrorType.PERMANENT),
    ],
)
async def test_a_reply_says_whether_trying_again_can_help(failure, mailbox, place, reply, kind):
    mailbox.replies[place] = reply

    error = await failure()

    assert error.type is kind
    assert reply in error.message


async def test_login_works_and_a_wrong_password_is_permanent_and_not_told(send, failure, smtp):
    account = smtp | {"username": "shop"}

    await send(smtp=account | {"password": "s3cret-password"})
    error = await failure(smtp=account | {"password": "wr0ng-password"})

    assert error.type is ErrorType.PERMANENT
    assert "wr0ng-password" not in error.message


async def test_a_server_without_tls_is_not_used_when_tls_was_asked_for(failure, mailbox, smtp):
    error = await failure(smtp=smtp | {"tls": "starttls"})

    assert error.type is ErrorType.PERMANENT
    assert mailbox.envelopes == []


@pytest.mark.parametrize("says", [b"", b"421 not now\r\n"])
async def test_a_server_that_hangs_up_may_answer_next_time(failure, peer, says):
    port = (await peer(says, is_asked=False)).port

    error = await failure(smtp={"host": "127.0.0.1", "port": port, "tls": "none"})

    assert error.type is ErrorType.TRANSIENT


async def test_a_closed_port_may_be_open_next_time(failure):
    assert (await failure(smtp={"host": "127.0.0.1", "port": 1, "tls": "none"})).type is ErrorType.TRANSIENT


@pytest.mark.parametrize("host", ["127.0.0.2", "169.254.169.254", "2130706433"])
async def test_the_mail_server_is_behind_the_same_guard(failure, host):
    assert (await failure(smtp={"host": host, "port": 25, "tls": "none"})).type is ErrorType.PERMANENT


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({"subject": "hi\r\nBcc: eve@example.org"}, "with.subject"),
        ({"subject": "=?utf-8?q?hi=0d=0aBcc:_eve@example.org?="}, "with.subject"),
        ({"subject": "hi\u2028there"}, "with.subject"),
        ({"to": "Ada\u2028 <ada@example.org>"}, "with.to[0]"),
        ({"to": "=?utf-8?q?=00?= <ada@example.org>"}, "with.to[0]"),
        ({"to": "=?utf-8?q?hi=0d=0aX:_y?= <ada@example.org>"}, "with.to[0]"),
        ({"to": "ada@example.org\nBcc: eve@example.org"}, "with.to[0]"),
        ({"to": ["ada@example.org", "bob@example.org\r\n"]}, "with.to[1]"),
        ({"from": "shop@example.com\r\nX: y"}, "with.from"),
        ({"to": "ada@example.org, eve@example.org"}, "with.to[0]"),
        ({"to": "Ada\x00 <ada@example.org>"}, "with.to[0]"),
        ({"to": "ada"}, "with.to[0]"),
        ({"to": "<>"}, "with.to[0]"),
        ({"to": " :=?<<]<=?utf-8?b? <a@b.org>"}, "with.to[0]"),
        ({"to": "a,:[]b=?utf-8?q?>=ff;=ff"}, "with.to[0]"),
        ({"to": " .a<=00[ü=0d=0a"}, "with.to[0]"),
        ({"to": "(" * 499}, "with.to[0]"),
        ({"to": []}, "with.to"),
        ({"to": 5}, "with.to"),
        ({"smtp": {"host": "a", "port": 0}}, "with.smtp.port"),
        ({"smtp": {"host": "a", "tls": "maybe"}}, "with.smtp.tls"),
    ],
)
async def test_what_would_forge_a_header_or_is_no_address_is_refused(failure, mailbox, inputs, field):
    error = await failure(**inputs)

    assert error.type is ErrorType.PERMANENT
    assert error.message.startswith(f"{field}: ")
    assert mailbox.envelopes == []


async def test_an_address_may_be_written_in_any_script(send, mailbox):
    await send(to=["Ünal <ünal@bücher.example>", "ada@example.org"], cc="用户@例子.example")

    assert mailbox.envelopes[-1].rcpt_tos == ["ünal@bücher.example", "ada@example.org", "用户@例子.example"]
    assert mailbox.message()["Cc"] == "用户@例子.example"


@pytest.mark.parametrize("missing", ["smtp", "from"])
async def test_without_a_server_or_a_sender_nothing_can_be_sent(run, missing):
    inputs = {"to": "ada@example.org", "from": "shop@example.com", "smtp": {"host": "mail.example"}}
    del inputs[missing]

    with pytest.raises(NodeFailure, match=f"with.{missing}"):
        await run("email.send", inputs)


def test_the_breaker_watches_the_server(registry):
    node_type = registry.get("email.send")
    inputs = {"to": "ada@example.org"}

    assert node_type.target(node_type.accept(inputs)) == "email.send"
    assert (
        node_type.target(node_type.accept(inputs | {"smtp": {"host": "mail.example"}})) == "email.send mail.example:587"
    )


# What a server repeats

PASSWORD = "s3cret-password"
IN_BASE64 = base64.b64encode(f"\0shop\0{PASSWORD}".encode()).decode()
REPEATED = {
    "plain": PASSWORD,
    "base64": IN_BASE64,
    "backwards": PASSWORD[::-1],
    "hex": PASSWORD.encode().hex(),
    "url": "".join(f"%{byte:02X}" for byte in PASSWORD.encode()),
}


def holds_password(data: bytes) -> bool:
    forms = [*REPEATED.values(), IN_BASE64[10:20]]
    return any(form.encode() in data or form.lower().encode() in data for form in forms)


@pytest.mark.parametrize("where", ["RCPT", "DATA", "AUTH"])
@pytest.mark.parametrize("form", REPEATED)
async def test_a_server_that_repeats_the_password_has_it_recorded_nowhere(smtp, mailbox, tmp_path, caplog, where, form):
    said = f"550 you said AUTH PLAIN {'x' * 240} {REPEATED[form]} just now"
    mailbox.replies |= {"RCPT": {"ada@example.org": said}, "DATA": {"DATA": said}, "AUTH": {"AUTH": said}}[where]
    mail = MailSettings(**smtp, username="shop", password=PASSWORD, sender="shop@example.com")
    sends = {"id": "send", "type": "email.send", "with": {"to": "ada@example.org"}, "retry": {"maxAttempts": 1}}
    settings = Settings(db=str(tmp_path / "mail.db"), allow_hosts=("127.0.0.1",), mail=mail)

    async with open_service(settings) as service:
        execution = await service.start(await service.save({"ropewalk": 1, "name": "mail", "nodes": [sends]}))
        ended = await service.ended(execution)
        told = msgspec.json.encode(await reading.list_events(service.store, execution))
        told += msgspec.json.encode(await reading.list_runs(service.store, execution))
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert ended.state is ExecutionState.FAILED
    assert b"you said AUTH PLAIN" in told
    assert not holds_password(told)
    assert not holds_password(kept)
    assert not holds_password(caplog.text.encode())


# Attachments


async def test_files_go_along_with_text_and_html(send, mailbox, keep):
    files = [
        await keep("id,total\n", "Bestellungen für Mai.csv"),
        await keep(b"\x00\xff" * 50_000, "x.bin", "image/png"),
    ]
    await send(text="See there.", html="<p>See there.</p>", attachments=files)

    message = mailbox.message()
    told = [(each.get_filename(), each.get_content_type()) for each in message.iter_attachments()]
    assert told == [("Bestellungen für Mai.csv", "text/csv"), ("x.bin", "image/png")]
    assert [each.get_payload(decode=True) for each in message.iter_attachments()] == [
        b"id,total\n", b"\x00\xff" * 50_000,
    ]  # fmt: skip
    assert message.get_body(("plain",)).get_content().strip() == "See there."
    assert message.get_body(("html",)).get_content().strip() == "<p>See there.</p>"


async def test_a_file_that_is_a_message_is_no_part_of_this_one(send, mailbox, keep):
    await send(text="x", attachments=[await keep("Bcc: eve@example.org\r\n\r\n", "a.eml", "message/rfc822")])

    [attached] = mailbox.message().iter_attachments()
    assert attached.get_content_type() == "application/octet-stream"


async def test_a_file_whose_name_would_start_a_header_does_not(send, mailbox, keep):
    value = await keep("x")
    value["$file"]["name"] = "a\r\nBcc: eve@example.org"
    await send(text="x", attachments=[value])

    assert mailbox.message()["Bcc"] is None
    assert mailbox.envelopes[-1].rcpt_tos == ["ada@example.org"]


async def test_attachments_that_are_too_large_or_none_fail_for_good_before_anything_is_sent(failure, mailbox):
    large = {"$file": {"hash": "0" * 64, "size": 21 * 2**20, "name": "x", "type": "text/csv"}}

    assert "20 MiB" in (await failure(attachments=[large])).message
    assert "is no file" in (await failure(attachments=[{"name": "x"}])).message
    assert mailbox.envelopes == []
