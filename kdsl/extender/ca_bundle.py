"""The caBundle of a MutatingWebhookConfiguration: contains the generated certificate of this process.

The certificates of other replicas stay in the bundle until they expire.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from msgspec import Struct

from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError, Sender
from kdsl.live.services import Served

EVERY: Final = 60.0
"""Seconds between checks: applying the manifest again removes the bundle."""
MOST: Final = 8
"""The most certificates in a bundle; the newest ones are kept."""
JSON_PATCH: Final = "application/json-patch+json"
_FOLDER: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_LOG: Final = logging.getLogger(__name__)


class _Client(Struct, frozen=True, rename="camel"):
    ca_bundle: str | None = None


class _Webhook(Struct, frozen=True, rename="camel"):
    client_config: _Client = _Client()


class _Meta(Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Configuration(Struct, frozen=True):
    metadata: _Meta = _Meta()
    webhooks: list[_Webhook] | None = None


_configuration: Final = msgspec.json.Decoder(_Configuration)


class CaBundle:
    """Keeps the bundle of one configuration."""

    def __init__(
        self,
        name: str,
        sender: Sender,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        every: float = EVERY,
    ) -> None:
        self._path = f"{_FOLDER}/{quote(name, safe='')}"
        self._name, self._sender, self._now, self._every = name, sender, now, every
        self._problem = ""

    async def keep(self, served: Served) -> None:
        """Write the bundle whenever the certificate is missing, until cancelled."""
        while True:
            try:
                await self.check(served.certificate)
            except (OSError, NoAnswerError, ValueError) as error:
                self._note(f"{type(error).__name__}: {error}")
            await asyncio.sleep(self._every)

    async def check(self, certificate: bytes) -> None:
        """Check the configuration once, and add the certificate to its bundles."""
        answer = await self._sender.send(HttpRequest("GET", self._path))
        if not answer.is_success:
            self._note(f"it cannot be read: {_said(answer)}")
            return
        known = _configuration.decode(answer.body)
        own = x509.load_pem_x509_certificate(certificate)
        steps = [
            {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": value}
            for at, webhook in enumerate(known.webhooks or ())
            if (value := self._bundle(webhook.client_config.ca_bundle or "", own))
            != webhook.client_config.ca_bundle
        ]
        if steps:
            test = {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": known.metadata.resource_version,
            }
            body = msgspec.json.encode([test, *steps])
            answer = await self._sender.send(HttpRequest("PATCH", self._path, body, JSON_PATCH))
            if not answer.is_success:
                self._note(f"it cannot be patched: {_said(answer)}")
                return
            _LOG.info("the certificate was written into the caBundle of webhook configuration %s", self._name)
        self._problem = ""

    def _bundle(self, before: str, own: x509.Certificate) -> str:
        """Return a bundle of our certificate and the unexpired ones of `before`, newest first."""
        now = self._now()
        kept = [each for each in _read(before) if each.not_valid_after_utc > now]
        if own in kept and len(kept) <= MOST:
            return before
        others = sorted((each for each in kept if each != own), key=lambda one: one.not_valid_before_utc)
        chosen = [own, *reversed(others)][:MOST]
        return b64encode(b"".join(each.public_bytes(Encoding.PEM) for each in chosen)).decode()

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            _LOG.warning("webhook configuration %s: %s", self._name, problem)
        self._problem = problem


def _read(bundle: str) -> Iterable[x509.Certificate]:
    """Return the certificates of a bundle; none if it is malformed."""
    try:
        return x509.load_pem_x509_certificates(b64decode(bundle)) if bundle else []
    except ValueError:
        return []


def _said(answer: HttpAnswer) -> str:
    return f"{answer.status} {answer.body[:200].decode('utf-8', 'replace')}"
