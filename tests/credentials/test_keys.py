"""Keys of `crypto.*` in credentials, on a whole engine: they are used, and stand nowhere."""

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from ropewalk.service import Service
from tests.credentials.test_nodes import ran, service

__all__ = ["service"]

SECRET = "s3cret-canary-0815"


async def test_a_code_is_made_and_verified_with_the_key_of_a_credential(service: Service):
    await service.credentials.create("key", "generic", {"value": SECRET}, [], "local")
    code = hmac.new(SECRET.encode(), b"body", hashlib.sha256).hexdigest()

    made = await ran(service, "crypto.hmac", credentials="key", **{"with": {"value": "body"}})
    checked = await ran(service, "crypto.verify", credentials="key", **{"with": {"value": "body", "signature": code}})

    assert (made[0], made[1]) == ("SUCCESS", {"a": code})
    assert (checked[0], checked[1]) == ("SUCCESS", {"a": True})


async def test_large_values_are_signed_beside_the_loop_with_the_key_of_a_credential(service: Service):
    await service.credentials.create("key", "generic", {"value": SECRET}, [], "local")
    body = "x" * 300_000

    made = await ran(service, "crypto.hmac", credentials="key", **{"with": {"value": body}})

    assert made[1] == {"a": hmac.new(SECRET.encode(), body.encode(), hashlib.sha256).hexdigest()}


async def test_a_private_key_of_many_lines_signs(service: Service):
    key = ed25519.Ed25519PrivateKey.generate()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    await service.credentials.create("key", "generic", {"value": key.private_bytes(*form).decode()}, [], "local")

    state, output, _ = await ran(service, "crypto.sign", credentials="key", **{"with": {"value": "body"}})

    assert state == "SUCCESS"
    assert len(str(output["a"])) == 88


@pytest.mark.parametrize(("fields", "says"), [
    ({"with": {"value": "body"}}, "with.key: there is none; name a credential"),
    ({"with": {"value": "body", "key": "plain"}, "credentials": "key"}, "with.key: the credential holds the key"),
])  # fmt: skip
async def test_a_node_needs_one_key_and_no_more(service: Service, fields: dict, says: str):
    await service.credentials.create("key", "generic", {"value": SECRET}, [], "local")

    state, _, error = await ran(service, "crypto.hmac", **fields)

    assert state == "FAILED"
    assert says in str(error)
