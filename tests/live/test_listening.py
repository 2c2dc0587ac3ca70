"""The server on loopback: TLS, a certificate that changes, connections that say nothing."""

from __future__ import annotations

import asyncio
import datetime
import errno
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kdsl.live.endpoints import certificate_mistakes
from kdsl.live.options import ServingOptions
from kdsl.live.serving import listening, tls_acceptor
from kdsl.live.serving.certificate import LIFETIME, KeyPair, ServedCertificate, self_signed
from kdsl.live.serving.listening import Bounds, Listener
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

NOW = datetime.datetime.now(datetime.UTC)


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


async def long_answer(request: Request) -> Response:
    return Response(b"x" * 8_000_000)


APP = Starlette(routes=[Route("/readyz", answer), Route("/long", long_answer)])
HEAD = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n"


def trusting(certificate: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificate.decode())


async def fetch(port: int, context: ssl.SSLContext | None) -> tuple[bytes, bytes]:
    """Return the answer and the certificate (DER) that it came with."""
    name = "localhost" if context else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    writer.write(HEAD + b"Connection: close\r\n\r\n")
    text = await reader.read()
    tls = writer.get_extra_info("ssl_object")
    writer.close()
    return text, tls.getpeercert(binary_form=True) if tls else b""


def test_it_is_served_with_a_certificate_of_its_own() -> None:
    pair = self_signed(NOW)
    served = ServedCertificate(pair)
    assert not served.refresh()

    async def run() -> bytes:
        server = Listener(APP, served.context)
        await server.start("127.0.0.1", 0)
        try:
            return (await fetch(server.port, trusting(pair.certificate)))[0]
        finally:
            await server.stop()

    text = asyncio.run(run())
    assert text.startswith(b"HTTP/1.1 200 OK\r\n") and text.endswith(b"\r\n\r\nok")
    made = x509.load_pem_x509_certificate(pair.certificate)
    assert made.not_valid_after_utc - NOW.replace(microsecond=0) == datetime.timedelta(days=365)


def test_a_certificate_is_read_again_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    pairs = [self_signed(NOW), self_signed(NOW)]
    files = tmp_path / "tls.crt", tmp_path / "tls.key"

    def write(number: int) -> None:
        files[0].write_bytes(pairs[number].certificate)
        files[1].write_bytes(pairs[number].key)

    write(0)
    served = ServedCertificate.of_files(*files)

    async def run() -> None:
        server = Listener(APP, served.context)
        await server.start("127.0.0.1", 0)
        try:
            await fetch(server.port, trusting(pairs[0].certificate))
            files[1].write_bytes(pairs[1].key)
            with pytest.raises(ssl.SSLError):
                served.refresh()
            await fetch(server.port, trusting(pairs[0].certificate))
            write(1)
            assert served.refresh() and not served.refresh()
            await fetch(server.port, trusting(pairs[1].certificate))
        finally:
            await server.stop()

    asyncio.run(run())


def test_a_certificate_of_another_version_is_served() -> None:
    pair = self_signed(NOW)
    version = b"\xa0\x03\x02\x01"
    data = ssl.PEM_cert_to_DER_cert(pair.certificate.decode()).replace(version + b"\2", version + b"\1", 1)
    served = ServedCertificate(KeyPair(ssl.DER_cert_to_PEM_cert(data).encode(), pair.key))
    assert not served.has_expired(NOW)
    assert not ServedCertificate(pair).has_expired(NOW)
    assert ServedCertificate(self_signed(NOW - 2 * LIFETIME)).has_expired(NOW)


def test_why_a_certificate_cannot_be_used(tmp_path: Path) -> None:
    one, other = self_signed(NOW), self_signed(NOW)
    secret = serialization.load_pem_private_key(one.key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    files = tmp_path / "tls.crt", tmp_path / "tls.key"

    def reason(certificate: bytes, key: bytes) -> str:
        files[0].write_bytes(certificate)
        files[1].write_bytes(key)
        (found,) = certificate_mistakes(ServingOptions(files=files))
        return found.title.removeprefix("the certificate of the endpoints cannot be used: ")

    assert reason(one.certificate, other.key) == "the key belongs to another certificate"
    assert reason(b"x", one.key) == reason(one.certificate, b"") == "there is no certificate or key in PEM"
    assert reason(one.certificate, secret) == "the key has a password"
    kind = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    assert reason(one.certificate, kind) == "the key belongs to another certificate"
    chain = one.certificate + b"-----BEGIN CERTIFICATE-----\nAAAA\n"
    assert reason(chain, one.key) == "a certificate or key in PEM breaks off"
    damaged = chain + b"-----END CERTIFICATE-----\n"
    assert reason(damaged, one.key) == "a certificate or key in PEM is damaged"


def test_a_connection_that_does_not_finish_a_head_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEADERS_WITHIN", 0.05)

    async def run() -> tuple[bytes, bytes]:
        server = Listener(APP, None)
        await server.start("127.0.0.1", 0)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(HEAD)
            slow = await asyncio.wait_for(reader.read(), 5)
            writer.close()
            # A second request on a connection that had one already.
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(HEAD + b"\r\n")
            again = await asyncio.wait_for(reader.readuntil(b"ok"), 5)
            writer.write(HEAD)
            again += await asyncio.wait_for(reader.read(), 5)
            writer.close()
            return slow, again
        finally:
            await server.stop()

    slow, again = asyncio.run(run())
    assert slow == b"" and again.endswith(b"ok")


def test_a_connection_without_a_tls_handshake_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "HEADERS_WITHIN", 0.05)

    async def run() -> bytes:
        server = Listener(APP, ServedCertificate(self_signed(NOW)).context)
        await server.start("127.0.0.1", 0)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            silence = await asyncio.wait_for(reader.read(), 5)
            writer.close()
            return silence
        finally:
            await server.stop()

    assert asyncio.run(run()) == b""


def test_handshakes_that_are_not_finished_are_few_and_keep_no_probe_away() -> None:
    async def run() -> tuple[bytes, int, bytes, int]:
        pair = self_signed(NOW)
        server = Listener(APP, ServedCertificate(pair).context, Bounds(4))
        await server.start("127.0.0.1", 0)
        most = 0
        try:
            silent = []
            for _ in range(20):
                silent.append(await asyncio.open_connection("127.0.0.1", server.port))
                most = max(most, server.handshakes)
            text = (await fetch(server.port, trusting(pair.certificate)))[0]
            # The oldest ones have made room for the others.
            first = await asyncio.wait_for(silent[0][0].read(), 5)
            async with asyncio.timeout(5):
                while server.handshakes > 4:
                    await asyncio.sleep(0.005)
            most = max(most, server.handshakes)
            for _, writer in silent[10:]:
                writer.write(b"this is no handshake")
            async with asyncio.timeout(5):
                while server.handshakes:
                    await asyncio.sleep(0.005)
            for _, writer in silent:
                writer.close()
            left = await asyncio.open_connection("127.0.0.1", server.port)
            while not server.handshakes:
                await asyncio.sleep(0.005)
        finally:
            await server.stop()
        end = await asyncio.wait_for(left[0].read(), 5)
        left[1].close()
        return text, most, first + end, server.handshakes

    text, most, silence, left = asyncio.run(run())
    assert text.endswith(b"ok") and most <= 4 and silence == b"" and left == 0


def test_without_room_for_open_files_connections_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pair = self_signed(NOW)
    accept, refused = socket.socket.accept, []

    def full(listening: socket.socket) -> tuple[socket.socket, object]:
        if len(refused) < 2:
            refused.append(listening)
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(listening)

    async def run() -> bytes:
        server = Listener(APP, ServedCertificate(pair).context)
        await server.start("127.0.0.1", 0)
        try:
            return (await asyncio.wait_for(fetch(server.port, trusting(pair.certificate)), 5))[0]
        finally:
            await server.stop()

    monkeypatch.setattr(tls_acceptor, "RETRY", 0.01)
    monkeypatch.setattr(socket.socket, "accept", full)
    assert asyncio.run(run()).endswith(b"ok") and len(refused) == 2
    said = [each.getMessage() for each in caplog.records if each.name == tls_acceptor.__name__]
    assert said == ["connections wait: too many open files"] * 2


def test_a_client_that_does_not_read_its_answer_loses_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening, "READ_WITHIN", 0.05)

    async def run() -> bytes:
        server = Listener(APP, None, Bounds(idle=1))
        await server.start("127.0.0.1", 0)
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(5):
                while not server.connections:
                    await asyncio.sleep(0.005)
                while server.connections:
                    await asyncio.sleep(0.005)
            writer.transport.abort()
            return (await fetch(server.port, None))[0]
        finally:
            await server.stop()

    assert asyncio.run(run()).endswith(b"ok")


def test_connections_that_say_nothing_keep_no_probe_away() -> None:
    async def run() -> tuple[bytes, int]:
        server = Listener(APP, None, Bounds(4))
        await server.start("127.0.0.1", 0)
        try:
            for _ in range(20):
                silent.append(socket.create_connection(("127.0.0.1", server.port)))
                await asyncio.sleep(0)
            return (await fetch(server.port, None))[0], server.connections
        finally:
            await server.stop()

    silent: list[socket.socket] = []
    text, most = asyncio.run(run())
    for each in silent:
        each.close()
    assert text.startswith(b"HTTP/1.1 200 OK") and most <= 4


def test_requests_that_do_not_arrive_whole_keep_no_probe_away() -> None:
    async def swallow(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{len(await request.body())} bytes")

    async def run() -> tuple[bytes, bytes]:
        app = Starlette(routes=[Route("/swallow", swallow, methods=["POST"]), Route("/readyz", answer)])
        server = Listener(app, None, Bounds(4))
        await server.start("127.0.0.1", 0)
        try:
            slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(4)]
            for _, writer in slow:
                writer.write(b"POST /swallow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na")
                # The first one is the oldest, and ends.
                await asyncio.sleep(0.01)
            probed = (await fetch(server.port, None))[0]
            slow[3][1].write(b"b")
            last = await asyncio.wait_for(slow[3][0].readuntil(b"bytes"), 5)
            assert await asyncio.wait_for(slow[0][0].read(), 5) == b""
            for _, writer in slow:
                writer.close()
            return probed, last
        finally:
            await server.stop()

    probed, last = asyncio.run(run())
    assert probed.startswith(b"HTTP/1.1 200 OK") and last.endswith(b"2 bytes")


def test_a_connection_beyond_the_limit_is_closed_if_all_are_at_work() -> None:
    goes_on = asyncio.Event()

    async def hanging(request: Request) -> PlainTextResponse:
        await goes_on.wait()
        return PlainTextResponse("late")

    async def run() -> tuple[bytes, bytes]:
        server = Listener(Starlette(routes=[Route("/readyz", hanging)]), None, Bounds(1))
        await server.start("127.0.0.1", 0)
        try:
            first = asyncio.create_task(fetch(server.port, None))
            while not server.connections:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            second = await asyncio.wait_for(reader.read(), 5)
            writer.close()
            goes_on.set()
            return (await first)[0], second
        finally:
            await server.stop()

    first, second = asyncio.run(run())
    assert first.endswith(b"late") and second == b""


def test_a_port_that_is_taken_is_an_error() -> None:
    async def run() -> None:
        first, second = Listener(APP, None), Listener(APP, None)
        await first.start("127.0.0.1", 0)
        try:
            with pytest.raises(OSError, match="ddress already in use"):
                await second.start("127.0.0.1", first.port)
        finally:
            await first.stop()

    asyncio.run(run())
