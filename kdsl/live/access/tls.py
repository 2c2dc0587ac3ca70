"""TLS to the API server: trusted authorities and the client certificate, reloaded after changes.

`cluster_access` makes it, `pool` gets a context from it for each connection.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError, reason_of
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.small_files import Stamp, as_file, note_failure, read_small, stamp

CHECK_EVERY: Final = 10.0
"""Seconds between two checks of the files."""

_REASONS: Final = {
    "pem lib": "there is no certificate or key in PEM",
    "no start line": "there is no certificate in PEM",
    "bad end line": "a certificate or key in PEM breaks off",
    "asn1 lib": "a certificate or key in PEM is damaged",
    "key values mismatch": "the key belongs to another certificate",
    "ee key too small": "the key is too small",
    # A key of another kind.
    "no certificate assigned": "the key belongs to another certificate",
}
"""The reasons in plain words, by OpenSSL's text."""
_PLACE: Final = re.compile(r"^\[[^]]*\] | \(_ssl\.c:\d+\)$")
"""The parts of a text that Python adds to OpenSSL's: the library, and a line of Python's own source."""

Pem: TypeAlias = Path | bytes
"""A file, or its content."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate with its chain, and the key to it."""

    chain: Pem
    key: Pem


@dataclass(frozen=True, slots=True)
class Trust:
    """The trusted certificates: an `authority`, None for the system's.

    `is_blind` accepts any certificate, which is for tests only.
    """

    authority: Pem | None = None
    is_blind: bool = False


class Tls:
    """The SSL context of connections, made again after a file has changed.

    `certificate` returns the client certificate to use at the time. Raises InvalidInputError if the context
    cannot be made; if files break later, the last context stays in use.
    """

    def __init__(
        self, trust: Trust, certificate: Callable[[], ClientCertificate | None], clock: Callable[[], float]
    ) -> None:
        self._trust = trust
        self._certificate = certificate
        self._clock = clock
        self._last = self._stamps()
        self._context = self._make()
        self._looked_at = clock()
        self.error = ""
        """Why the changed files are unusable."""

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection."""
        now = self._clock()
        if now - self._looked_at < CHECK_EVERY:
            return self._context
        self._looked_at = now
        stamps = self._stamps()
        if stamps != self._last:
            try:
                self._context, self.error = self._make(), ""
            except InvalidInputError as error:
                # The rotation may be incomplete: checked again later.
                self.error = note_failure(error, self.error, "the last certificates stay in use")
            else:
                self._last = stamps
        return self._context

    def _stamps(self) -> tuple[object, ...]:
        shown = self._certificate()
        pems = (self._trust.authority, *((shown.chain, shown.key) if shown else ()))
        return tuple(_stamp_of(pem) for pem in pems)

    def _make(self) -> ssl.SSLContext:
        # Not `create_default_context`: with newer Pythons it refuses the authorities of many clusters.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As in kubectl: every certificate of the authority is trusted, even if it is no root.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        if self._trust.is_blind:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self._trust.authority is None:
            context.load_default_certs()
        else:
            _trust(context, self._trust.authority)
        shown = self._certificate()
        if shown is not None:
            _show(context, shown)
        return context


def _stamp_of(pem: Pem | None) -> bytes | Stamp:
    return stamp(pem) if isinstance(pem, Path) else pem


def _trust(context: ssl.SSLContext, authority: Pem) -> None:
    try:
        # Bundles have comments between the certificates, also in other scripts; the library takes ASCII only.
        text = _content(authority, "the certificate authority").decode("ascii", "ignore")
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise _unusable("the certificate authority", authority, error) from None


def _show(context: ssl.SSLContext, shown: ClientCertificate) -> None:
    chain = _content(shown.chain, "the client certificate")
    key = _content(shown.key, "the client key")
    try:
        # The library takes files only. Write them from the content that was read with a size limit.
        with as_file(chain) as chain_file, as_file(key) as key_file:
            context.load_cert_chain(chain_file, key_file, password=_no_password)
    except (OSError, ValueError) as error:
        raise _unusable("the client certificate or its key", shown.chain, error) from None


def _content(pem: Pem, what: str) -> bytes:
    return read_small(pem, what, AccessCode.CREDENTIALS) if isinstance(pem, Path) else pem


def unusable_reason(error: OSError | ValueError) -> str:
    """Return why OpenSSL refuses a certificate or a key, or why its file cannot be read."""
    text = _PLACE.sub("", reason_of(error))
    return _REASONS.get(text, text)


def _unusable(what: str, pem: Pem, error: OSError | ValueError) -> InvalidInputError:
    where = str(pem) if isinstance(pem, Path) else ""
    title = f"{what} cannot be used: {unusable_reason(error)}"
    help_ = ("it must be PEM, the key without a password",)
    return InvalidInputError([Diagnostic(AccessCode.CREDENTIALS, title, where=where, help=help_)])


def _no_password() -> str:
    raise ValueError("the key is encrypted")
