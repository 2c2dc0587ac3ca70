"""The certificate of the scheduler's own endpoints: generated in memory, or read from files."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kdsl.base.file_policy import read_named
from kdsl.live.access.small_files import as_file

MAX_BYTES: Final = 1024 * 1024
LIFETIME: Final = datetime.timedelta(days=365)
_EARLY: Final = datetime.timedelta(hours=1)
"""Seconds before its creation from which a certificate is valid: clocks differ."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (with its chain) and its key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def digest(self) -> bytes:
        """Return a digest that differs between two pairs."""
        return hashlib.sha256(self.certificate + b"\\0" + self.key).digest()


def self_signed(now: datetime.datetime, names: Sequence[str] = ()) -> KeyPair:
    """Generate a certificate for localhost, 127.0.0.1 and `names` (hosts or addresses), valid for a year."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localhost@{int(now.timestamp())}")])
    alternatives = [_general_name(each) for each in dict.fromkeys(("localhost", "127.0.0.1", *names))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


Again = Callable[[], KeyPair | None]
"""Returns the current certificate, or None for no change. May raise OSError or ssl.SSLError."""


class ServedCertificate:
    """The TLS context of the server. Open connections keep the certificate they began with.

    `refresh` calls `again`.
    """

    def __init__(self, pair: KeyPair, again: Again = lambda: None) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._again = again
        self._use(pair)

    @staticmethod
    def of_files(certificate: Path, key: Path) -> ServedCertificate:
        """Read files, which `refresh` reads again; raise OSError or ssl.SSLError if they are unusable."""
        return ServedCertificate(_read(certificate, key), lambda: _read(certificate, key))

    @staticmethod
    def made(now: Callable[[], datetime.datetime], names: Sequence[str] = ()) -> ServedCertificate:
        """Generate a certificate for localhost and `names`; `refresh` replaces it after 2/3 of its time."""
        made_at = now()

        def again() -> KeyPair | None:
            nonlocal made_at
            if now() < made_at + LIFETIME * 2 / 3:
                return None
            made_at = now()
            return self_signed(made_at, names)

        return ServedCertificate(self_signed(made_at, names), again)

    @property
    def certificate(self) -> bytes:
        """The served certificate with its chain, as PEM."""
        return self._pair.certificate

    def has_expired(self, now: datetime.datetime) -> bool:
        """Return whether the served certificate is no longer valid, as far as it can be read."""
        try:
            return x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc < now
        except (ValueError, x509.InvalidVersion):
            # OpenSSL serves some certificates that this library does not read, such as those of version 2.
            return False

    def refresh(self) -> bool:
        """Load the current certificate and return whether it is new.

        Raises OSError or ssl.SSLError if they are unusable: the previous certificate stays in use.
        """
        pair = self._again()
        if pair is None or pair.digest == self._pair.digest:
            return False
        # Load into a new context first: a pair that does not match must not replace a good one, not even in
        # part.
        ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _load(ssl_context, pair)
        self._use(pair)
        return True

    def _use(self, pair: KeyPair) -> None:
        _load(self.context, pair)
        self._pair = pair


def _read(certificate: Path, key: Path) -> KeyPair:
    return KeyPair(read_named(certificate, MAX_BYTES), read_named(key, MAX_BYTES))


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    with as_file(pair.certificate + b"\n" + pair.key) as path:
        context.load_cert_chain(path, password=_no_password)


def _no_password() -> str:
    """Answer a request for the password of a key: without this, OpenSSL would ask the terminal."""
    raise ssl.SSLError(1, "the key has a password")
