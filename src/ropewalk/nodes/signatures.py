"""Signatures by public keys: what a scheme signs with, and whether a signature is genuine."""

from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from ropewalk.nodes.failure import NodeFailure

LARGEST_RSA = 8_192
SMALLEST_RSA = 2_048

_PSS: Final = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
_HOW: Final[dict[str, tuple[Any, ...]]] = {
    "ed25519": (),
    "ecdsa-sha256": (ec.ECDSA(hashes.SHA256()),),
    "rsa-pss-sha256": (_PSS, hashes.SHA256()),
    "rsa-sha256": (padding.PKCS1v15(), hashes.SHA256()),
}
_PRIVATE: Final[dict[str, type]] = {
    "ed25519": ed25519.Ed25519PrivateKey,
    "ecdsa-sha256": ec.EllipticCurvePrivateKey,
    "rsa-pss-sha256": rsa.RSAPrivateKey,
    "rsa-sha256": rsa.RSAPrivateKey,
}
_PUBLIC: Final[dict[str, type]] = {
    "ed25519": ed25519.Ed25519PublicKey,
    "ecdsa-sha256": ec.EllipticCurvePublicKey,
    "rsa-pss-sha256": rsa.RSAPublicKey,
    "rsa-sha256": rsa.RSAPublicKey,
}


def signature(scheme: str, pem: str, data: bytes) -> bytes:
    """The signature of the data with a private key."""
    try:
        key: Any = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Its own words may repeat parts of the key.
        raise NodeFailure.permanent("with.key: is no private key as PEM without a password") from None
    _require(key, _PRIVATE[scheme], scheme)
    made: bytes = key.sign(data, *_HOW[scheme])
    return made


def is_signature(scheme: str, pem: str, data: bytes, claimed: bytes) -> bool:
    """Whether these bytes are the signature of the data by the owner of a public key."""
    try:
        key: Any = load_pem_public_key(pem.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise NodeFailure.permanent("with.key: is no public key as PEM") from None
    _require(key, _PUBLIC[scheme], scheme)
    try:
        key.verify(claimed, data, *_HOW[scheme])
    except InvalidSignature:
        return False
    return True


def _require(key: Any, kind: type, scheme: str) -> None:
    if not isinstance(key, kind):
        raise NodeFailure.permanent(f"with.key: is no key for {scheme}")
    bits: int = getattr(key, "key_size", SMALLEST_RSA)
    if scheme.startswith("rsa") and not SMALLEST_RSA <= bits <= LARGEST_RSA:
        raise NodeFailure.permanent(f"with.key: an RSA key must have {SMALLEST_RSA:,} to {LARGEST_RSA:,} bits")
