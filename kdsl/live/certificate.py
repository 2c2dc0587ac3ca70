"""The certificate that the scheduler's own endpoints are served with: made in memory, or read from files."""

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
from kdsl.live.content_files import as_file

MAX_BYTES: Final = 1024 * 1024
LIFETIME: Final = datetime.timedelta(days=365)
_EARLY: Final = datetime.timedelta(hours=1)
"""A certificate is good a little before it is made: clocks differ."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (with its chain) and its key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def digest(self) -> bytes:
        """What tells two pairs apart."""
        return hashlib.sha256(self.certificate + b"\\0" + self.key).digest()


def self_signed(now: datetime.datetime, names: Sequence[str] = ()) -> KeyPair:
    """Make a certificate for localhost, 127.0.0.1 and `names`, hosts or addresses, good for a year."""
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
"""Returns what is to be served from now on; None: what is served. May raise OSError or ssl.SSLError."""


class ServedCertificate:
    """The TLS context of the server. Connections that are open keep what they began with.

    `refresh` asks `again`.
    """

    def __init__(self, pair: KeyPair, again: Again = lambda: None) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._again = again
        self._use(pair)

    @staticmethod
    def of_files(certificate: Path, key: Path) -> ServedCertificate:
        """Read files, which `refresh` reads again; OSError or ssl.SSLError where they cannot be used."""
        return ServedCertificate(_read(certificate, key), lambda: _read(certificate, key))

    @staticmethod
    def made(now: Callable[[], datetime.datetime], names: Sequence[str] = ()) -> ServedCertificate:
        """Make a certificate for localhost and `names`; another one when two thirds of its time are over."""
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
        """The certificate that is served, with its chain, as PEM."""
        return self._pair.certificate

    def refresh(self) -> bool:
        """Use what is to be served now; tell whether that is new.

        Raises OSError or ssl.SSLError where they cannot be used: what was used before stays in use.
        """
        pair = self._again()
        if pair is None or pair.digest == self._pair.digest:
            return False
        # A pair that does not fit must not take the place of one that does, not even in part.
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
    """Answer who asks for the password of a key: without this, the terminal would be asked."""
    raise ssl.SSLError("the key has a password")
