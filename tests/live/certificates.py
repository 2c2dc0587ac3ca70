"""Certificates for tests on loopback, made anew for each run: an authority, and two of it for servers and clients.

`CERTIFICATES` is a folder with `ca.crt`, and `server` and `client` as `.crt` and `.key`; it goes with the process.
"""

from __future__ import annotations

import ipaddress
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BOTH: Final = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
_NAMES: Final = x509.SubjectAlternativeName(
    [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name("kdsl-test-ca"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _make(folder: Path) -> None:
    authority = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    own = (
        _builder("kdsl-test-ca", authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA256())
    )
    (folder / "ca.crt").write_bytes(own.public_bytes(serialization.Encoding.PEM))
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    for name in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(f"kdsl-test-{name}", key)
            .add_extension(_NAMES, critical=False)
            .add_extension(_BOTH, critical=False)
            .add_extension(issuer, critical=False)
            .sign(authority, hashes.SHA256())
        )
        (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / f"{name}.key").write_bytes(private)


_FOLDER: Final = tempfile.TemporaryDirectory(prefix="kdsl-certificates-")
CERTIFICATES: Final = Path(_FOLDER.name)
_make(CERTIFICATES)
