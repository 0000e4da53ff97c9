"""A real issuer on loopback: its keys at an address, and tokens signed with them."""

import json
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as ec_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key
from jwt.warnings import InsecureKeyLengthWarning

from ropewalk.access.settings import Issuer

ISSUER = "https://issuer.test/"
AUDIENCE = "ropewalk"
RSA = rsa_key(public_exponent=65_537, key_size=2_048)
WEAK_RSA = rsa_key(public_exponent=65_537, key_size=1_024)
EC = ec_key(SECP256R1())
OTHER_CURVE = ec_key(SECP384R1())
ED = Ed25519PrivateKey.generate()
ANOTHER_ED = Ed25519PrivateKey.generate()
KEYS: Mapping[str, tuple[Any, str]] = {
    "rsa": (RSA, "RS256"),
    "ec": (EC, "ES256"),
    "ed": (ED, "EdDSA"),
    "weak": (WEAK_RSA, "RS256"),
    "p384": (OTHER_CURVE, "ES384"),
    "another": (ANOTHER_ED, "EdDSA"),
}


def described(kid: str, **more: Any) -> dict[str, Any]:
    """The public half of a key as issuers show it."""
    key, algorithm = KEYS[kid]
    to_jwk: Any = jwt.get_algorithm_by_name(algorithm)
    return {**json.loads(to_jwk.to_jwk(key.public_key())), "kid": kid, "use": "sig", **more}


def signed(claims: Mapping[str, Any], by: str = "ed", **headers: Any) -> str:
    """A token as an issuer makes it, without the care that libraries take; `headers` are added to its own."""
    key, algorithm = KEYS[by]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureKeyLengthWarning)
        return jwt.PyJWS().encode(json.dumps(claims).encode(), key, algorithm, headers={"kid": by, **headers})


class JwksServer:
    """Where the keys are. `answer` is what it says; every time it is asked counts."""

    def __init__(self) -> None:
        self.keys = [described("rsa"), described("ec"), described("ed"), described("weak"), described("p384")]
        self.answer: Any = None
        self.asked = 0
        self.url = ""

    def issuer(self, **more: Any) -> Issuer:
        return Issuer(**{"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": self.url, "timeout": 2.0, **more})

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.answer is not None:
            return await self.answer(request)  # type: ignore[no-any-return]
        return web.json_response({"keys": self.keys})


@asynccontextmanager
async def issuing() -> AsyncIterator[JwksServer]:
    """A server for the time being."""
    server, app = JwksServer(), web.Application()
    app.router.add_get("/{name:.*}", server.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}/keys"
    try:
        yield server
    finally:
        await runner.cleanup()
