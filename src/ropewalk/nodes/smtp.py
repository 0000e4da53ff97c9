"""Which mail server, and how to log in to it."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Encryption(StrEnum):
    """How the connection to a mail server is protected."""

    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


class SmtpSettings(BaseModel):
    """A mail server and how to log in to it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    host: str = Field(min_length=1, max_length=253, description="Its name.", examples=["mail.example.org"])
    port: int = Field(587, ge=1, le=65535, description="Its port.", examples=[465])
    username: str | None = Field(None, max_length=256, description="Who logs in.", examples=["shop"])
    password: str | None = Field(None, max_length=256, repr=False, description="The password.", examples=["…"])
    tls: Encryption = Field(Encryption.STARTTLS, description="How the connection is protected.", examples=["tls"])
