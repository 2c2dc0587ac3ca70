"""TLS: files that rotate, a certificate that is made, and the webhook's caBundle."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop
from cryptography import x509
from kdsl.extender.ca_bundle import MOST, CaBundle
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.options import ServingOptions
from kdsl.live.serving.certificate import LIFETIME, ServedCertificate, self_signed

from tests.extender.site import Reply, Site, post, site

NOW = datetime.now(UTC)
CALL: dict[str, Any] = {"Pod": {"metadata": {"name": "a"}, "spec": {"containers": []}}, "NodeNames": ["n2"]}


def trusting(certificate: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificate.decode())


async def answered(here: Site, certificate: bytes) -> Reply:
    return await post(here.port, "/filter", CALL, ssl=trusting(certificate))


def test_certificates_that_rotate_are_read_again(tmp_path: Path) -> None:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    first, second = self_signed(NOW), self_signed(NOW)

    def write(certificate: bytes, key: bytes) -> None:
        files[0].write_bytes(certificate)
        files[1].write_bytes(key)

    write(first.certificate, first.key)

    async def run() -> None:
        async with site(serving=ServingOptions("127.0.0.1", 0, files, renew_every=0.02)) as here:
            assert (await answered(here, first.certificate)).status == 200
            # One file is there before the other: what fits stays.
            files[0].write_bytes(second.certificate)
            await asyncio.sleep(0.1)
            assert (await answered(here, first.certificate)).status == 200
            files[1].write_bytes(second.key)
            async with asyncio.timeout(20):
                while True:
                    try:
                        assert (await answered(here, second.certificate)).status == 200
                        break
                    except (ssl.SSLCertVerificationError, ConnectionResetError):
                        await asyncio.sleep(0.02)
            with pytest.raises(ssl.SSLCertVerificationError):
                await answered(here, first.certificate)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_an_expired_certificate_and_a_missing_file_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files, old = (tmp_path / "tls.crt", tmp_path / "tls.key"), self_signed(NOW - LIFETIME * 2)
    files[0].write_bytes(old.certificate)
    files[1].write_bytes(old.key)

    async def run() -> None:
        async with site(serving=ServingOptions("127.0.0.1", 0, files, renew_every=0.02)):
            files[1].unlink()
            await asyncio.sleep(0.2)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    logged = [each.getMessage() for each in caplog.records]
    assert logged.count("the served certificate has expired: clients that verify it refuse it") == 1
    kept = "the served certificate cannot be renewed, the one before stays"
    assert f"{kept}: `{files[1]}`: no such file or directory" in logged


def test_a_certificate_is_made_for_the_names_of_the_service() -> None:
    names = ("kdsl-extender.kube-system.svc", "10.0.0.1")

    async def run() -> None:
        async with site(serving=ServingOptions("127.0.0.1", 0, names=names)) as here:
            endpoints = here.instance.process.endpoints
            assert endpoints is not None
            assert (await answered(here, endpoints.certificate)).status == 200
            made = x509.load_pem_x509_certificate(endpoints.certificate)
            known = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            assert known.get_values_for_type(x509.DNSName) == ["localhost", names[0]]
            assert [str(each) for each in known.get_values_for_type(x509.IPAddress)] == [
                "127.0.0.1",
                names[1],
            ]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_a_certificate_that_is_made_is_made_again_in_time() -> None:
    now = NOW
    served = ServedCertificate.made(lambda: now)
    first = served.certificate
    now += LIFETIME * 0.6
    assert not served.refresh() and served.certificate == first
    now += LIFETIME * 0.1
    assert served.refresh() and served.certificate != first
    assert not served.refresh()


class Server:
    """An API server with one webhook configuration."""

    def __init__(self, *bundles: str | None) -> None:
        self.webhooks = [
            {
                "name": f"w{at}",
                "clientConfig": {"service": {"name": "s"}, **({"caBundle": each} if each else {})},
            }
            for at, each in enumerate(bundles)
        ]
        self.version = 1
        self.requests: list[HttpRequest] = []
        self.refusal = 0

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        self.requests.append(request)
        if self.refusal:
            return HttpAnswer(self.refusal, b"no")
        if request.method == "PATCH":
            test, *steps = msgspec.json.decode(request.body)
            assert test == {"op": "test", "path": "/metadata/resourceVersion", "value": str(self.version)}
            assert request.content_type == "application/json-patch+json"
            for step in steps:
                _, _, at, *_ = step["path"].split("/")
                assert step["path"] == f"/webhooks/{at}/clientConfig/caBundle" and step["op"] == "add"
                self.webhooks[int(at)]["clientConfig"]["caBundle"] = step["value"]
            self.version += 1
        document = {"metadata": {"resourceVersion": str(self.version)}, "webhooks": self.webhooks}
        return HttpAnswer(200, msgspec.json.encode(document))

    def bundles(self) -> list[list[bytes]]:
        """Return the fingerprints of the certificates of each bundle."""
        found = []
        for each in self.webhooks:
            loaded = x509.load_pem_x509_certificates(b64decode(each["clientConfig"]["caBundle"]))
            found.append([one.fingerprint(one.signature_hash_algorithm) for one in loaded])
        return found

    @property
    def patches(self) -> int:
        return sum(request.method == "PATCH" for request in self.requests)


def fingerprint(certificate: bytes) -> bytes:
    one = x509.load_pem_x509_certificate(certificate)
    return one.fingerprint(one.signature_hash_algorithm)


def look(server: Server, certificate: bytes) -> None:
    asyncio.run(CaBundle("kdsl", server).check(certificate))


def test_the_bundle_gets_the_certificate_once() -> None:
    server, own = Server(None, ""), self_signed(NOW).certificate
    look(server, own)
    look(server, own)
    assert server.bundles() == [[fingerprint(own)]] * 2
    assert server.patches == 1
    assert server.requests[0].path.endswith("/mutatingwebhookconfigurations/kdsl")


def test_the_certificates_of_other_replicas_stay_while_they_are_good() -> None:
    other, old = self_signed(NOW), self_signed(NOW - LIFETIME - timedelta(days=1))
    before = b64encode(old.certificate + other.certificate).decode()
    server, own = Server(before), self_signed(NOW).certificate
    look(server, own)
    assert server.bundles() == [[fingerprint(own), fingerprint(other.certificate)]]


def test_a_bundle_does_not_grow_without_end() -> None:
    pairs = [self_signed(NOW - timedelta(days=each)) for each in range(MOST + 3)]
    server, own = (
        Server(b64encode(b"".join(each.certificate for each in pairs)).decode()),
        self_signed(NOW).certificate,
    )
    look(server, own)
    assert server.bundles() == [
        [fingerprint(own), *(fingerprint(each.certificate) for each in pairs[: MOST - 1])]
    ]


@pytest.mark.parametrize("bundle", ["no base64!", b64encode(b"no certificate").decode()])
def test_a_bundle_that_is_none_is_replaced(bundle: str) -> None:
    server, own = Server(bundle), self_signed(NOW).certificate
    look(server, own)
    assert server.bundles() == [[fingerprint(own)]]


def test_problems_are_logged_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf(Server):
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
            if len(self.requests) < 2:
                self.requests.append(request)
                raise NoAnswerError("no route to host", may_be_done=False)
            return await super().send(request)

    server, own = Deaf(None), self_signed(NOW).certificate

    class Endpoints:
        certificate, port = own, 0

    async def run() -> None:
        keeping = asyncio.create_task(CaBundle("kdsl", server, every=0.001).keep(Endpoints()))
        async with asyncio.timeout(20):
            while not server.patches:
                await asyncio.sleep(0.005)
        keeping.cancel()

    asyncio.run(run())
    assert server.bundles() == [[fingerprint(own)]]
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "webhook configuration kdsl: NoAnswerError: no route to host"
    ]


def test_a_refusal_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(None)
    server.refusal = 403
    look(server, self_signed(NOW).certificate)
    assert "it cannot be read: 403 no" in caplog.text
