"""The one table of credential types: what each is for, its fields, which of them are secret, and how it is tried.

A new type is a model and a row below. A secret field is made with `secret`: it is stored encrypted and never shown.
Nodes see the values under the names that documents have (`clientId`).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import AnyHttpUrl, Field, TypeAdapter, ValidationError, field_validator
from pydantic.config import JsonDict

from ropewalk.nodes.describing import titled
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.smtp import Encryption

LONGEST_SECRET: Final = 16_384
_LINE: Final = r"^[^\x00-\x1f\x7f]+$"
_HEADER: Final = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
_url: Final = TypeAdapter(AnyHttpUrl)


def secret(description: str, example: str, default: Any = ...) -> Any:
    """A field that is stored encrypted, and shown by nothing."""
    more: JsonDict = {"writeOnly": True, "format": "password"}
    return Field(default, min_length=1, max_length=LONGEST_SECRET, repr=False, description=description,
                 examples=[example], json_schema_extra=more)  # fmt: skip


def line(description: str, example: Any, default: Any = ...) -> Any:
    """A field of one line of text, which is no secret."""
    return Field(default, min_length=1, max_length=2_048, pattern=_LINE, description=description, examples=[example])


def address(description: str, example: str, default: Any = ...) -> Any:
    """A field that holds the address of a service."""
    more: JsonDict = {"format": "uri"}
    return Field(default, min_length=1, max_length=2_048, description=description, examples=[example],
                 json_schema_extra=more)  # fmt: skip


class Fields(Inputs):
    """What the fields of credential types derive from; an address is http or https, without a name and password."""

    @field_validator("base_url", "token_url", "test_url", "endpoint", check_fields=False)
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            url = _url.validate_python(value)
        except ValidationError:
            raise ValueError("must be an address like https://api.example.org") from None
        if url.username or url.password:
            raise ValueError("must not hold a name or a password")
        return value


class _Tried(Fields):
    test_url: str | None = address("What is asked with it when it is tried.", "https://api.example.org/me", None)


class Basic(_Tried):
    username: str = line("Who logs in.", "shop")
    password: str = secret("The password.", "…")


class Bearer(_Tried):
    token: str = secret("What is sent as `Authorization: Bearer …`.", "…")


class Header(_Tried):
    name: str = Field(max_length=128, pattern=_HEADER, description="The header.", examples=["X-Api-Key"])
    value: str = secret("What the header holds.", "…")


class Query(_Tried):
    name: str = line("The parameter of the query.", "api_key")
    value: str = secret("What the parameter holds.", "…")


class Sending(StrEnum):
    """Where a client sends its id and secret when it asks for a token."""

    BASIC = "basic"
    BODY = "body"


class OAuthClient(_Tried):
    token_url: str = address("Where tokens are asked for.", "https://login.example.org/token")
    client_id: str = line("The client's id.", "shop")
    client_secret: str = secret("The client's secret.", "…")
    scope: str | None = line("The scopes that are asked for, with spaces between.", "orders.read", None)
    audience: str | None = line("Whom the token is for, if the issuer asks.", "https://api.example.org", None)
    send_as: Sending = Field(Sending.BASIC, description="How id and secret are sent.", examples=["body"])


class OAuthRefresh(_Tried):
    token_url: str = address("Where tokens are asked for.", "https://login.example.org/token")
    client_id: str = line("The client's id.", "shop")
    client_secret: str | None = secret("The client's secret, if it has one.", "…", None)
    refresh_token: str = secret("The refresh token of the first login.", "…")
    scope: str | None = line("The scopes that are asked for, with spaces between.", "orders.read", None)
    send_as: Sending = Field(Sending.BASIC, description="How id and secret are sent.", examples=["body"])


class Aws(Fields):
    access_key_id: str = line("The id of the access key.", "AKIAIOSFODNN7EXAMPLE")
    secret_access_key: str = secret("The secret access key.", "…")
    session_token: str | None = secret("The session token of a temporary key.", "…", None)
    region: str = line("The region.", "eu-central-1", "us-east-1")
    service: str | None = line("The service that requests are signed for, if the host does not tell.", "s3", None)
    endpoint: str | None = address("A store that speaks S3 elsewhere.", "https://minio.example.org", None)
    path_style: bool = Field(
        True, description="Whether such a store has the bucket in the path, and not in the host.", examples=[False]
    )


class Tls(StrEnum):
    """How the connection to a database is protected."""

    NONE = "none"
    REQUIRE = "require"
    VERIFY = "verify"


class _Database(Fields):
    host: str = line("Its name.", "db.example.org")
    database: str = line("Which database of the server.", "shop")
    username: str = line("Who logs in.", "shop")
    password: str | None = secret("The password.", "…", None)
    tls: Tls = Field(Tls.VERIFY, description="How the connection is protected.", examples=["require"])
    ca: str | None = Field(
        None, max_length=65_536, description="The authority that its certificate is from, as PEM, if it is an own one.",
        examples=["-----BEGIN CERTIFICATE-----…"],
    )  # fmt: skip


class Postgres(_Database):
    port: int = Field(5432, ge=1, le=65535, description="Its port.", examples=[5432])


class Mysql(_Database):
    port: int = Field(3306, ge=1, le=65535, description="Its port.", examples=[3306])


class Sqlite(Fields):
    path: str = line("The file of the database, in the workspace's folder (`files.root`).", "shop.db")


class Smtp(Fields):
    host: str = line("The mail server.", "mail.example.org")
    port: int = Field(587, ge=1, le=65535, description="Its port.", examples=[465])
    username: str | None = line("Who logs in.", "shop", None)
    password: str | None = secret("The password.", "…", None)
    tls: Encryption = Field(Encryption.STARTTLS, description="How the connection is protected.", examples=["tls"])
    sender: str | None = line("Whom mail is from, unless a node says so.", "shop@example.org", None)


class OpenAi(Fields):
    api_key: str = secret("The key.", "…")
    base_url: str = address("The service, or one that speaks the same.", "https://api.openai.com/v1",
                            "https://api.openai.com/v1")  # fmt: skip
    organization: str | None = line("The organization that pays.", "org-1", None)


class Anthropic(Fields):
    api_key: str = secret("The key.", "…")
    base_url: str = address("The service.", "https://api.anthropic.com", "https://api.anthropic.com")


class ServiceToken(Fields):
    """What services take that are told apart by the address alone."""

    token: str = secret("The token.", "…")


class Slack(ServiceToken):
    base_url: str = address("The service.", "https://slack.com/api", "https://slack.com/api")


class Github(ServiceToken):
    base_url: str = address("The service, or a server of one's own.", "https://api.github.com",
                            "https://api.github.com")  # fmt: skip


class Stripe(Fields):
    api_key: str = secret("The secret key, or a restricted one.", "…")
    base_url: str = address("The service.", "https://api.stripe.com", "https://api.stripe.com")


class Telegram(ServiceToken):
    base_url: str = address("The service.", "https://api.telegram.org", "https://api.telegram.org")


class Discord(ServiceToken):
    base_url: str = address("The service.", "https://discord.com/api/v10", "https://discord.com/api/v10")


class Google(Fields):
    client_email: str = line("The service account.", "shop@project.iam.gserviceaccount.com")
    private_key: str = secret("Its private key, as PEM.", "-----BEGIN PRIVATE KEY-----…")
    scope: str = line("The scopes, with spaces between.", "https://www.googleapis.com/auth/spreadsheets",
                      "https://www.googleapis.com/auth/spreadsheets")  # fmt: skip
    token_url: str = address("Where tokens are asked for.", "https://oauth2.googleapis.com/token",
                             "https://oauth2.googleapis.com/token")  # fmt: skip
    base_url: str = address("The service.", "https://sheets.googleapis.com", "https://sheets.googleapis.com")


class Notion(ServiceToken):
    base_url: str = address("The service.", "https://api.notion.com", "https://api.notion.com")


class Airtable(ServiceToken):
    base_url: str = address("The service.", "https://api.airtable.com", "https://api.airtable.com")


class Generic(Fields):
    value: str = secret("The secret: a key, a token, a password.", "…")


class Webhook(Fields):
    key: str = secret("The key that deliveries are signed with.", "whsec_…")
    previous_key: str | None = secret("The key before, which is good until it is taken away.", "…", None)


class Nats(Fields):
    url: str = Field(
        max_length=2_048, pattern=r"^(nats|tls)://[^\s/@?#]+$", examples=["tls://nats.example.org:4222"],
        description="The server: `tls://` insists on a connection that is protected, `nats://` does not.",
    )  # fmt: skip
    username: str | None = line("Who logs in.", "shop", None)
    password: str | None = secret("The password.", "…", None)
    token: str | None = secret("The token, in place of name and password.", "…", None)

    @field_validator("url")
    @classmethod
    def _has_host_and_port(cls, value: str) -> str:
        """A port that is none is a ValueError of the parser."""
        url = urlsplit(value)
        if not url.hostname or url.port == 0:
            raise ValueError("must be an address like tls://nats.example.org:4222")
        return value


class CredentialType(Struct, frozen=True):
    """One kind of credential."""

    name: str
    title: str
    summary: str
    Fields: type[Fields]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its fields; a secret one is `writeOnly`."""
        made: dict[str, Any] = titled(self.Fields.model_json_schema())
        return made

    def secrets(self) -> tuple[str, ...]:
        """The names of its secret fields, in the order of the schema."""
        return tuple(name for name, field in self.schema()["properties"].items() if field.get("writeOnly"))


_ROWS: Final[tuple[tuple[str, str, str, type[Fields]], ...]] = (
    ("http.basic", "Name and password", "HTTP basic authentication.", Basic),
    ("http.bearer", "Bearer token", "A token in the header Authorization.", Bearer),
    ("http.header", "Header", "A secret in a header of its own.", Header),
    ("http.query", "Query parameter", "A secret in the query of the address.", Query),
    ("http.digest", "Digest", "HTTP digest authentication.", Basic),
    ("oauth2.client", "OAuth2 client", "OAuth2 with the client's own credentials.", OAuthClient),
    ("oauth2.refresh", "OAuth2 refresh token", "OAuth2 with a refresh token.", OAuthRefresh),
    ("aws", "AWS", "An access key of AWS, or of a store that speaks S3.", Aws),
    ("postgres", "PostgreSQL", "A PostgreSQL database.", Postgres),
    ("mysql", "MySQL", "A MySQL or MariaDB database.", Mysql),
    ("sqlite", "SQLite", "A SQLite database in the workspace's folder.", Sqlite),
    ("smtp", "Mail server", "A mail server that sends.", Smtp),
    ("openai", "OpenAI", "A language model by the API of OpenAI.", OpenAi),
    ("anthropic", "Anthropic", "A language model by the API of Anthropic.", Anthropic),
    ("slack", "Slack", "A token of Slack.", Slack),
    ("github", "GitHub", "A token of GitHub.", Github),
    ("stripe", "Stripe", "A key of Stripe.", Stripe),
    ("telegram", "Telegram", "The token of a bot on Telegram.", Telegram),
    ("discord", "Discord", "The token of a bot on Discord.", Discord),
    ("google", "Google", "A service account of Google.", Google),
    ("notion", "Notion", "A token of Notion.", Notion),
    ("airtable", "Airtable", "A token of Airtable.", Airtable),
    ("webhook", "Webhook key", "The key that the sender of a webhook signs with.", Webhook),
    ("nats", "NATS", "A NATS server with JetStream.", Nats),
    ("generic", "Secret", "One secret text, such as a key to sign with.", Generic),
)

TYPES: Final[Mapping[str, CredentialType]] = {row[0]: CredentialType(*row) for row in _ROWS}
"""Every type of credentials by name."""
