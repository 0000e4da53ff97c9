"""Hashes, codes and signatures; moments."""

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure

PEM, RAW = serialization.Encoding.PEM, serialization.NoEncryption()


def pair(key):
    private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, RAW).decode()
    return private, key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture(scope="module")
def keys():
    rsa_key = pair(rsa.generate_private_key(65537, 2048))
    return {
        "ed25519": pair(ed25519.Ed25519PrivateKey.generate()),
        "ecdsa-sha256": pair(ec.generate_private_key(ec.SECP256R1())),
        "rsa-pss-sha256": rsa_key,
        "rsa-sha256": rsa_key,
    }


@pytest.mark.parametrize(
    ("with_", "value"),
    [
        ({"value": "abc"}, hashlib.sha256(b"abc").hexdigest()),
        ({"value": "YWJj", "read": "base64"}, hashlib.sha256(b"abc").hexdigest()),
        ({"value": {"b": 1, "a": 2}}, hashlib.sha256(b'{"a":2,"b":1}').hexdigest()),
        ({"value": "", "algorithm": "sha3-256"}, hashlib.sha3_256(b"").hexdigest()),
        ({"value": "abc", "algorithm": "md5", "encoding": "base64url"}, "kAFQmDzST7DWlj99KOF_cg"),
    ],
)
async def test_values_are_hashed(run, with_, value):
    assert (await run("crypto.hash", with_)).value == value


async def test_a_code_is_made_and_checked(run):
    code = (await run("crypto.hmac", {"value": "body", "key": "s3cret", "algorithm": "sha512"})).value

    assert code == hmac.new(b"s3cret", b"body", "sha512").hexdigest()
    with_ = {"value": "body", "key": "s3cret", "algorithm": "sha512", "signature": code}
    assert (await run("crypto.verify", with_)).ports == ("valid",)
    for wrong in ({"value": "other"}, {"key": "other"}, {"signature": "no hex"}, {"signature": ""}):
        assert (await run("crypto.verify", with_ | wrong)).ports == ("invalid",)


@pytest.mark.parametrize("scheme", ["ed25519", "ecdsa-sha256", "rsa-pss-sha256", "rsa-sha256"])
async def test_a_signature_is_made_and_checked(run, keys, scheme):
    private, public = keys[scheme]
    made = (await run("crypto.sign", {"value": "body", "scheme": scheme, "key": private})).value

    with_ = {"value": "body", "scheme": scheme, "key": public, "signature": made, "encoding": "base64"}
    assert (await run("crypto.verify", with_)).value is True
    for wrong in ({"value": "bodi"}, {"signature": "AAAA"}, {"signature": "%"}):
        assert (await run("crypto.verify", with_ | wrong)).ports == ("invalid",)


@pytest.mark.parametrize(
    ("type_name", "with_", "message"),
    [
        ("crypto.hash", {"value": "xyz", "read": "hex"}, "with.value: cannot be read as hex"),
        ("crypto.hash", {"value": "a", "algorithm": "crc"}, "with.algorithm: "),
        ("crypto.hmac", {"value": "a", "key": ""}, "with.key: "),
        ("crypto.hmac", {"value": "a", "key": "s3cret!", "readKey": "base64"}, "with.key: cannot be read as base64"),
        ("crypto.sign", {"value": "a", "key": "s3cret!"}, "with.key: is no private key as PEM"),
        (
            "crypto.verify",
            {"value": "a", "key": "s3cret!", "scheme": "ed25519", "signature": ""},
            "with.key: is no pub",
        ),
        (
            "crypto.verify",
            {"value": "a", "key": "s3cret!", "scheme": "ed25519", "signature": "", "algorithm": "md5"},
            "with: algorithm and readKey go with scheme hmac only",
        ),
    ],
)
async def test_what_cannot_be_signed_is_a_permanent_failure_that_tells_no_key(run, type_name, with_, message):
    with pytest.raises(NodeFailure) as caught:
        await run(type_name, with_)

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith(message)
    assert "s3cret!" not in f"{caught.value.error}"


async def test_a_key_of_another_kind_is_a_permanent_failure(run, keys):
    with pytest.raises(NodeFailure, match="is no key for ed25519"):
        await run("crypto.sign", {"value": "a", "key": keys["rsa-sha256"][0]})


@pytest.mark.parametrize(
    ("with_", "field", "value"),
    [
        ({}, "utc", "2027-01-15T08:00:00Z"),
        ({"value": "2026-03-01"}, "utc", "2026-03-01T00:00:00Z"),
        ({"value": "2026-03-01T12:00:00+02:00"}, "unix", 1_772_359_200),
        ({"value": "2026-07-01T12:00:00", "zone": "Europe/Berlin"}, "utc", "2026-07-01T10:00:00Z"),
        ({"value": 0, "zone": "Asia/Kolkata"}, "iso", "1970-01-01T05:30:00+05:30"),
        ({"value": "01.03.2026", "parse": "%d.%m.%Y", "zone": "Europe/Berlin"}, "utc", "2026-02-28T23:00:00Z"),
        ({"value": "2026-01-31T00:00:00Z", "add": {"months": 1}}, "date", "2026-02-28"),
        # Clocks go forward in Berlin on 29 March 2026: a day later it is the same time on the wall, and 23 hours later.
        ({"value": "2026-03-28T12:00:00", "zone": "Europe/Berlin", "add": {"days": 1}}, "utc", "2026-03-29T10:00:00Z"),
        ({"value": "2026-03-28T12:00:00", "zone": "Europe/Berlin", "add": {"hours": 24}}, "time", "13:00:00"),
        ({"value": "2026-11-18T10:30:00Z", "startOf": "week"}, "iso", "2026-11-16T00:00:00Z"),
        ({"value": "2026-11-18T10:30:00Z", "startOf": "year"}, "date", "2026-01-01"),
        ({"value": "2026-11-18T10:30:00Z", "startOf": "hour"}, "time", "10:00:00"),
        ({"value": "2026-11-18T10:30:00Z"}, "week", 47),
        ({"value": "2026-11-18T10:30:00Z"}, "weekday", 3),
        ({"value": "2026-03-01T23:30:00Z", "zone": "Europe/Berlin", "format": "%a %H:%M"}, "text", "Mon 00:30"),
        ({"value": 0, "format": "rfc2822"}, "text", "Thu, 01 Jan 1970 00:00:00 +0000"),
        ({"value": "2026-03-01", "since": "2026-01-01", "unit": "months"}, "difference", 2),
        ({"value": "2026-03-01", "since": "2026-03-02", "unit": "hours"}, "difference", -24),
    ],
)
async def test_moments_are_read_moved_and_written(run, with_, field, value):
    assert (await run("datetime", with_)).value[field] == value


@pytest.mark.parametrize(
    ("with_", "message"),
    [
        ({"value": "soon"}, "with.value: is no moment"),
        ({"value": 1e300}, "with.value: is no moment"),
        ({"value": 0, "since": "x"}, "with.since: is no moment"),
        ({"value": "1", "parse": "%d"}, "with.value: '1' does not read like '%d'"),
        ({"parse": "%d"}, "with: parse says how value is written"),
        ({"zone": "Mars/Base"}, "with.zone: is no time zone"),
        ({"zone": "../../etc/passwd"}, "with.zone: is no time zone"),
        ({"zone": ""}, "with.zone: is no time zone"),
        ({"add": {"years": 9000}}, "with: gives a date outside"),
        ({"add": {"hours": 1e9}}, "with.add: gives a date outside"),
        ({"add": {"months": 0.5}}, "with.add: months must be"),
        ({"format": "%Q"}, "with: unknown directive"),
    ],
)
async def test_what_is_no_moment_is_a_permanent_failure_with_the_field(run, with_, message):
    with pytest.raises(NodeFailure) as caught:
        await run("datetime", with_)

    assert (caught.value.error.type, caught.value.error.message[: len(message)]) == (ErrorType.PERMANENT, message)
