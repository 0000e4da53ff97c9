"""A certificate of a name, and the authority that vouches for it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOON = datetime(2026, 1, 1, tzinfo=UTC)


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _built(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    built = x509.CertificateBuilder().subject_name(_named(subject)).issuer_name(_named(issuer))
    built = built.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return built.not_valid_before(NOON).not_valid_after(NOON + timedelta(days=3650))


def write_certificate(folder: Path, name: str) -> str:
    """Writes `cert.pem` and `key.pem` of this name into the folder; gives the authority as PEM."""
    root, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _built("authority", "authority", root).add_extension(x509.BasicConstraints(True, None), True)
    signed = authority.sign(root, hashes.SHA256())
    leaf = _built(name, "authority", own).add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(leaf.sign(root, hashes.SHA256()).public_bytes(pem))
    secret = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    return signed.public_bytes(pem).decode()
