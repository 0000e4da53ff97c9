"""`email.send`: one message by SMTP, recognisable to receivers when it comes twice."""

import hashlib
import re
import socket
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.errors import NonASCIILocalPartDefect
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from types import MappingProxyType
from typing import Annotated, Any

import aiosmtplib
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.failure import shortened
from ropewalk.nodes.folder import on_a_thread
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.mail_attachments import LARGEST_ATTACHED, MOST_ATTACHED, Attachment, attachments_of
from ropewalk.nodes.smtp import Encryption, SmtpSettings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_RECIPIENTS = 100
LONGEST_REPLY = 300
TIMEOUT = 60.0
NO_ADDRESS = "is no mail address; write it like ada@example.org or Ada <ada@example.org>"


# Control characters, and all that Python takes for a line break.
_FORBIDDEN = re.compile(r"[\0-\x1f\x7f\x85\u2028\u2029]")


def _one_line(text: str) -> str:
    # A line break would start a header of the writer's choice.
    if _FORBIDDEN.search(text):
        raise ValueError("has a line break or another control character, which is not allowed in a header")
    return text


def _subject(text: str) -> str:
    # An encoded word is text in disguise: the message is written with what it stands for.
    _one_line(str(SMTP_POLICY.header_factory("Subject", _one_line(text))))
    return text


def parse_address(text: str) -> Address:
    """The address of `ada@example.org` or `Ada <ada@example.org>`; ValueError for anything else, and for several."""
    try:
        header: Any = SMTP_POLICY.header_factory("To", _one_line(text))
        addresses: tuple[Address, ...] = header.addresses
    except (AttributeError, IndexError, RecursionError, TypeError) as error:
        # How the standard library says of some texts that it cannot read them.
        raise ValueError(NO_ADDRESS) from error
    defects = [defect for defect in header.defects if not isinstance(defect, NonASCIILocalPartDefect)]
    if defects or len(addresses) != 1 or not (addresses[0].username and addresses[0].domain):
        raise ValueError(NO_ADDRESS)
    _one_line(str(addresses[0]))
    return addresses[0]


def _an_address(text: str) -> str:
    parse_address(text)
    return text


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Subject = Annotated[str, Field(max_length=998), AfterValidator(_subject)]
MailAddress = Annotated[str, Field(max_length=500), AfterValidator(_an_address)]
MailAddresses = Annotated[
    list[MailAddress],
    BeforeValidator(_as_list),
    Field(max_length=MOST_RECIPIENTS),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class EmailSend(NodeType):
    name = "email.send"
    summary = "Sends an e-mail by SMTP, with files attached if wanted."
    about = About(
        title="Send e-mail",
        category="reach",
        icon="mail",
        keywords=("smtp", "mail", "message", "notify", "attachment"),
        output={
            "type": "object",
            "properties": {
                "messageId": {"type": "string", "description": "The id of the message."},
                "accepted": {"type": "array", "description": "The addresses the server took it for."},
                "refused": {"type": "object", "description": "Why the server refused others, by address."},
            },
        },
    )

    credentials = MappingProxyType({"": ("smtp",)})

    class Parameters(Inputs):
        to: MailAddresses = Field(description="Who gets it.", examples=["ada@example.org"])
        cc: MailAddresses = Field([], description="Who gets a copy.", examples=[["bob@example.org"]])
        bcc: MailAddresses = Field([], description="Who gets a copy unseen by others.", examples=["log@example.org"])
        subject: Subject = Field("", description="The subject.", examples=["Order {{ input.orderId }}"])
        text: str | None = Field(None, description="The message as plain text.", examples=["Dear Ada, …"])
        html: str | None = Field(None, description="The message as HTML.", examples=["<p>Dear Ada, …</p>"])
        attachments: list[dict[str, Any]] = Field(
            [], max_length=MOST_ATTACHED, examples=[["{{ nodes.report.output }}"]],
            description=f"Files that go along, {LARGEST_ATTACHED // 2**20} MiB together at most.",
        )  # fmt: skip
        sender: MailAddress | None = Field(
            None, alias="from", description="The sender; by default that of the settings.",
            examples=["Shop <shop@example.org>"],
        )  # fmt: skip
        smtp: SmtpSettings | None = Field(
            None,
            description="`{host, port, tls, username}`; else that of the settings. A password belongs in a credential.",
            examples=[{"host": "mail.example.org"}],
        )

        @field_validator("to")
        @classmethod
        def _a_recipient(cls, to: list[str]) -> list[str]:
            if not to:
                raise ValueError("names no recipient")
            return to

    def target(self, parameters: Parameters) -> str | None:
        """The server, if the parameters name one; the worker's own is the same for all."""
        smtp = parameters.smtp
        return f"{self.name} {smtp.host}:{smtp.port}" if smtp else self.name

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        server, sender = await _server(parameters, context)
        context.conceal(server.password)
        attached = await attachments_of(parameters.attachments, context)
        about = (parameters, parse_address(sender), context.idempotency_key, context.now, attached)
        message = await on_a_thread(compose, *about) if attached else compose(*about)
        envelope = [_plain(text) for text in (*parameters.to, *parameters.cc, *parameters.bcc)]
        refused = await _deliver(message, list(dict.fromkeys(envelope)), server, context)
        accepted = [address for address in dict.fromkeys(envelope) if address not in refused]
        return Output({"messageId": message["Message-ID"], "accepted": accepted, "refused": refused})


async def _server(parameters: EmailSend.Parameters, context: NodeContext) -> tuple[SmtpSettings, str]:
    """The mail server and the sender: of the credential, of the parameters, or of the settings."""
    credential = await context.credential("", "smtp")
    server = parameters.smtp or context.smtp
    sender = parameters.sender or context.facilities.sender
    if credential is not None:
        if parameters.smtp is not None:
            raise NodeFailure.permanent("with.smtp: the credential names the server; leave one of them out")
        credential.require_host(credential.values["host"])
        server = SmtpSettings.model_validate({k: v for k, v in credential.values.items() if k != "sender"})
        sender = parameters.sender or credential.values.get("sender") or sender
    if server is None:
        raise NodeFailure.permanent("no mail server: name a credential, give with.smtp, or set smtp.host where it runs")
    if sender is None:
        raise NodeFailure.permanent("no sender: give with.from, or set smtp.sender where it runs")
    return server, sender


def _plain(text: str) -> str:
    return parse_address(text).addr_spec


def compose(
    parameters: EmailSend.Parameters, sender: Address, key: str, now: int, attached: Sequence[Attachment] = ()
) -> EmailMessage:
    """The message; the same for every attempt, its id included, so that a mail program that gets it twice can tell."""
    message = EmailMessage(policy=SMTP_POLICY)
    message["From"] = sender
    message["To"] = ", ".join(parameters.to)
    if parameters.cc:
        message["Cc"] = ", ".join(parameters.cc)
    message["Subject"] = parameters.subject
    message["Message-ID"] = f"<{hashlib.sha256(key.encode()).hexdigest()[:40]}@{_ascii_domain(sender)}>"
    message["Date"] = format_datetime(EPOCH + timedelta(microseconds=now))
    _fill(message, parameters)
    for each in attached:
        main, _, sub = each.type.partition(";")[0].partition("/")
        # What is itself a message, or made of several, is sent as it is and read by no program as a part of this one.
        kind = ("application", "octet-stream") if main in ("message", "multipart") else (main, sub)
        message.add_attachment(each.content, maintype=kind[0], subtype=kind[1], filename=each.name)
    return message


def _ascii_domain(sender: Address) -> str:
    return sender.domain if sender.domain.isascii() else "ropewalk.invalid"


def _fill(message: EmailMessage, parameters: EmailSend.Parameters) -> None:
    if parameters.text is not None or parameters.html is None:
        message.set_content(parameters.text or "")
    if parameters.html is not None and parameters.text is not None:
        message.add_alternative(parameters.html, subtype="html")
    elif parameters.html is not None:
        message.set_content(parameters.html, subtype="html")


async def _deliver(
    message: EmailMessage, envelope: list[str], server: SmtpSettings, context: NodeContext
) -> dict[str, str]:
    """Hands the message over; gives back the recipients that the server refused while it took the others."""
    connection = await context.connect(server.host, server.port)
    try:
        async with _client(connection, server) as client:
            refused, _ = await client.send_message(message, recipients=envelope)
    except (aiosmtplib.SMTPException, OSError, ValueError) as error:
        raise _classified(error, server, context) from error
    finally:
        connection.close()
    return {address: f"{reply.code} {_brief(reply.message, context)}" for address, reply in refused.items()}


def _brief(text: str, context: NodeContext) -> str:
    """The beginning of what a server said: masked first, since half of a password is no longer recognised as one."""
    return shortened(context.masked(text), LONGEST_REPLY)


def _client(connection: socket.socket, server: SmtpSettings) -> aiosmtplib.SMTP:
    return aiosmtplib.SMTP(
        hostname=server.host,
        sock=connection,
        username=server.username,
        password=server.password,
        local_hostname="localhost",
        use_tls=server.tls is Encryption.TLS,
        start_tls=server.tls is Encryption.STARTTLS,
        timeout=TIMEOUT,
    )


def _classified(error: Exception, server: SmtpSettings, context: NodeContext) -> NodeFailure:
    """4xx and a broken connection may go by; 5xx and what the server cannot do stay."""
    place = f"the mail server {server.host}:{server.port}"
    codes = _codes(error)
    if codes:
        told = f"{place} refused: {_brief(_reply(error), context)}"
        return NodeFailure.transient(told) if any(code < 500 for code in codes) else NodeFailure.permanent(told)
    told = f"{place}: {_brief(str(error), context) or type(error).__name__}"
    is_untrusted = isinstance(error, ssl.SSLCertVerificationError) or isinstance(
        error.__cause__, ssl.SSLCertVerificationError
    )
    if isinstance(error, OSError) and not is_untrusted:
        return NodeFailure.transient(told)
    return NodeFailure.permanent(told)


def _codes(error: Exception) -> list[int]:
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        return [refusal.code for refusal in error.recipients]
    return [error.code] if isinstance(error, aiosmtplib.SMTPResponseException) else []


def _reply(error: Exception) -> str:
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        return "; ".join(f"{refusal.recipient}: {refusal.code} {refusal.message}" for refusal in error.recipients[:3])
    assert isinstance(error, aiosmtplib.SMTPResponseException)
    return f"{error.code} {error.message}"
