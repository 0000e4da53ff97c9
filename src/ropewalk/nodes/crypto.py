"""`crypto.*`: hashes, message authentication and signatures.

No error repeats a part of a key. A key that is a parameter is recorded with the inputs of the node: those who may read
payloads can read it. A key that is a secret belongs in a credential of the type generic.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from ropewalk.core.canonical import canonical
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.json_text import BRIEF_TEXT

JSON: TypeAlias = Any
Digest = Literal["sha256", "sha384", "sha512", "sha3-256", "sha1", "md5"]
Encoding = Literal["hex", "base64", "base64url"]
Reading = Literal["text", "hex", "base64", "base64url"]
Scheme = Literal["ed25519", "ecdsa-sha256", "rsa-pss-sha256", "rsa-sha256"]

LONGEST_KEY = 16_384
PEM = "-----BEGIN PRIVATE KEY-----\n…"
TEXT = {"type": "string"}
KEY: Final = MappingProxyType({"": ("generic",)})
_WRITERS: Final[dict[Encoding, Callable[[bytes], str]]] = {
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64url": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
}


class Data(Inputs):
    """What is hashed or signed."""

    value: JSON = Field(
        description="The text; any other value is taken as JSON with sorted keys.", examples=["{{ input.body }}"]
    )
    read: Reading = Field("text", description="What the text is: text, or bytes written so.", examples=["base64"])

    def data(self) -> bytes:
        """The bytes."""
        if not isinstance(self.value, str):
            return canonical(self.value)
        return as_bytes(self.value, self.read, "with.value")


class Written(Inputs):
    """How bytes are written."""

    encoding: Encoding = Field("hex", description="How the result is written.", examples=["base64"])


def as_bytes(text: str, read: Reading, field: str) -> bytes:
    """The bytes that a text says; a permanent failure with the field if it says none."""
    try:
        match read:
            case "text":
                return text.encode()
            case "hex":
                return bytes.fromhex(text)
            case "base64":
                return base64.b64decode(text, validate=True)
            case "base64url":
                return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise NodeFailure.permanent(f"{field}: cannot be read as {read}") from None


class Hash(NodeType):
    name = "crypto.hash"
    summary = "Makes the hash of a text or a value."
    about = About(
        title="Hash",
        category="data",
        icon="fingerprint",
        keywords=("sha256", "md5", "digest", "checksum", "fingerprint"),
        output={**TEXT, "description": "The hash."},
    )
    only_shapes = True

    class Parameters(Data, Written):
        algorithm: Digest = Field(
            "sha256", description="The algorithm; md5 and sha1 are broken, and here for old systems.",
            examples=["sha512"],
        )  # fmt: skip

    def takes_long(self, parameters: Parameters) -> bool:
        return not isinstance(parameters.value, str) or len(parameters.value) > BRIEF_TEXT

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        made = hashlib.new(_name(parameters.algorithm), parameters.data(), usedforsecurity=False).digest()
        return Output(_WRITERS[parameters.encoding](made))


def _name(algorithm: str) -> str:
    return algorithm.replace("-", "_")


class Hmac(Hash):
    name = "crypto.hmac"
    summary = "Makes the message authentication code (HMAC) of a text or a value with a secret."
    about = About(
        title="HMAC",
        category="data",
        icon="key-round",
        keywords=("hmac", "sign", "webhook", "signature", "secret", "sha256"),
        output={**TEXT, "description": "The code."},
    )

    credentials = KEY

    class Parameters(Hash.Parameters):
        key: str | None = Field(
            None, min_length=1, max_length=LONGEST_KEY, repr=False, examples=["…"],
            description="The secret, unless a credential holds it.",
        )  # fmt: skip
        read_key: Reading = Field("text", description="What the secret is: text, or bytes.", examples=["base64"])

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:  # type: ignore[override]  # its own
        return Output(_WRITERS[parameters.encoding](_code(parameters, await _key(parameters.key, context))))


def _code(how: "Hmac.Parameters | Verify.Parameters", key: str) -> bytes:
    secret = as_bytes(key, how.read_key, "with.key")
    return hmac.new(secret, how.data(), _name(how.algorithm)).digest()


async def _key(written: str | None, context: NodeContext) -> str:
    """The key: of the credential, or of the parameters."""
    credential = await context.credential("", "generic")
    if credential is None:
        if written is None:
            raise NodeFailure.permanent("with.key: there is none; name a credential of the type generic, or give it")
        return written
    if written is not None:
        raise NodeFailure.permanent("with.key: the credential holds the key; leave one of them out")
    return str(credential.values["value"])


class Sign(NodeType):
    name = "crypto.sign"
    summary = "Signs a text or a value with a private key."
    about = About(
        title="Sign",
        category="data",
        icon="pen-line",
        keywords=("signature", "rsa", "ecdsa", "ed25519", "private key"),
        output={**TEXT, "description": "The signature."},
    )
    only_shapes = True

    credentials = KEY

    class Parameters(Data):
        scheme: Scheme = Field("ed25519", description="The kind of key and signature.", examples=["rsa-pss-sha256"])
        key: str | None = Field(
            None, min_length=1, max_length=LONGEST_KEY, repr=False, examples=[PEM],
            description="The private key as PEM, without a password, unless a credential holds it.",
        )  # fmt: skip
        encoding: Encoding = Field("base64", description="How the signature is written.", examples=["hex"])

    def takes_long(self, parameters: Parameters) -> bool:
        return True

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        from ropewalk.nodes.signatures import signature  # here, since the library is slow to import

        made = signature(parameters.scheme, await _key(parameters.key, context), parameters.data())
        return Output(_WRITERS[parameters.encoding](made))


class Verify(NodeType):
    name = "crypto.verify"
    summary = "Says whether an HMAC or a signature is genuine."
    about = About(
        title="Verify signature",
        category="data",
        icon="shield-check",
        keywords=("signature", "hmac", "webhook", "rsa", "ecdsa", "ed25519", "public key", "check"),
        output={"type": "boolean", "description": "Whether it is genuine."},
        ports={"valid": "It is genuine.", "invalid": "It is not."},
    )
    only_shapes = True
    ports = ("valid", "invalid")
    takes_one_port = True
    has_rules = True
    credentials = KEY

    class Parameters(Data):
        signature: str = Field(max_length=LONGEST_KEY, description="What is to be checked.", examples=["9f86d081…"])
        encoding: Encoding = Field("hex", description="How the signature is written.", examples=["base64"])
        scheme: Literal["hmac"] | Scheme = Field("hmac", description="The kind of signature.", examples=["ed25519"])
        algorithm: Digest = Field("sha256", description="The algorithm of an HMAC.", examples=["sha512"])
        key: str | None = Field(
            None, min_length=1, max_length=LONGEST_KEY, repr=False, examples=["…"],
            description="The secret of an HMAC, or the public key as PEM, unless a credential holds it.",
        )  # fmt: skip
        read_key: Reading = Field("text", description="What the secret of an HMAC is.", examples=["base64"])

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.scheme != "hmac" and {"algorithm", "read_key"} & self.model_fields_set:
                raise ValueError("algorithm and readKey go with scheme hmac only")
            return self

    def takes_long(self, parameters: Parameters) -> bool:
        return True

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        is_valid = _is_genuine(parameters, await _key(parameters.key, context))
        return Output(is_valid, ("valid" if is_valid else "invalid",))


def _is_genuine(how: Verify.Parameters, key: str) -> bool:
    try:
        claimed = as_bytes(how.signature, how.encoding, "with.signature")
    except NodeFailure:
        # What is no signature at all comes from outside like a wrong one.
        return False
    if how.scheme == "hmac":
        return hmac.compare_digest(_code(how, key), claimed)
    from ropewalk.nodes.signatures import is_signature  # here, as in Sign

    return is_signature(how.scheme, key, how.data(), claimed)
