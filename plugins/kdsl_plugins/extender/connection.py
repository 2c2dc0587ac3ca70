"""One POST of JSON to an extender: the address, TLS and a time limit for the whole call."""

from __future__ import annotations

import http.client
import socket
import ssl
import tempfile
import time
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from kdsl.base.threads import THREADS

_CHUNK: Final = 1 << 16
MOST_BYTES: Final = 16 << 20
_TIMES_ASKED: Final = 2
"""The limit of an answer is a constant plus this many times the size of the request, which may hold nodes."""
_NO_HTTP: Final = (http.client.BadStatusLine, http.client.UnknownProtocol)
_SHOWN: Final = 100
"""The most characters of an answer in a message: such a line may have 64 KiB."""


class ExtenderError(Exception):
    """A failed call; the message is a sentence."""


class _RefusedError(Exception):
    """An answer that is refused; the message is half a sentence."""


class _Https(http.client.HTTPSConnection):
    """A connection whose server may have to prove another name than the one in its address."""

    def __init__(self, host: str, port: int, timeout: float, context: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._tls, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        # The handshake runs later, so that a caller that gives up can find the socket and close it.
        self.sock = self._tls.wrap_socket(
            self.sock, server_hostname=self._name, do_handshake_on_connect=False
        )
        self.sock.do_handshake()


class Connection:
    """The address of an extender: below `prefix`, with `timeout` seconds for a call.

    Each call opens its own connection. Raises ValueError for an invalid address, OSError for TLS files that
    cannot be read.
    """

    def __init__(self, prefix: str, timeout: float, https: bool, tls: Mapping[str, Any]) -> None:
        parts = urlsplit(prefix)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{prefix}` is no address of an extender: write http://HOST:PORT/PATH")
        self._prefix = prefix.rstrip("/")
        self._timeout = timeout
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._path = parts.path.rstrip("/")
        self._name = tls.get("serverName") or parts.hostname
        self._tls = tls_context(https, tls) if parts.scheme == "https" else None

    def post(self, verb: str, document: object) -> Any:
        """Send a JSON document to `verb` and return the answered document; raises ExtenderError otherwise.

        The time limit covers name resolution, connecting, the handshake and every byte.
        """
        url = f"{self._prefix}/{verb}"
        body = msgspec.json.encode(document)
        most = MOST_BYTES + _TIMES_ASKED * len(body)
        connection = self._open()
        connection.auto_open = 0  # a closed connection does not open again
        # On a thread: nothing else bounds the time of name resolution, or of waiting for a header.
        begun = THREADS.begin(lambda: self._exchange(connection, verb, body, most))
        try:
            return _decoded(begun.result(self._timeout))
        except TimeoutError as error:
            raise ExtenderError(f'Post "{url}": no answer within {self._timeout:g}s') from error
        except (OSError, http.client.HTTPException) as error:
            raise ExtenderError(f'Post "{url}": {_why(error)}') from error
        except _RefusedError as error:
            raise ExtenderError(f'Post "{url}": {error}') from error
        except ExtenderError:
            raise
        except Exception as error:
            raise ExtenderError(f'Post "{url}": {type(error).__name__}: {error}') from error
        finally:
            _hang_up(connection)

    def _exchange(self, connection: http.client.HTTPConnection, verb: str, body: bytes, most: int) -> bytes:
        """Send the request and read the answer of at most `most` bytes."""
        deadline = time.monotonic() + self._timeout
        connection.connect()
        if time.monotonic() > deadline:
            connection.close()  # the caller has given up
            raise TimeoutError
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request("POST", f"{self._path}/{verb}", body, headers)
        with connection.getresponse() as response:
            if response.status != http.client.OK:
                url = f"{self._prefix}/{verb}"
                raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
            return _read(response, most)

    def _open(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return _Https(self._host, self._port, self._timeout, self._tls, self._name)


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """Close a connection, so that a thread that still reads from it ends as well."""
    channel: socket.socket | None = connection.sock
    if channel is not None:
        with suppress(OSError):
            # Shut down the plain socket, not the TLS one, which other threads may be reading.
            socket.socket.shutdown(channel, socket.SHUT_RDWR)
    connection.close()


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    """Read a body of at most `most` bytes."""
    parts: list[bytes] = []
    left = most
    while part := response.read1(_CHUNK):
        left -= len(part)
        if left < 0:
            raise _RefusedError(f"the answer has more than {most} bytes")
        parts.append(part)
    return b"".join(parts)


def _decoded(answer: bytes) -> Any:
    try:
        return msgspec.json.decode(answer)
    except msgspec.DecodeError as error:
        raise _RefusedError(f"the answer is no JSON: {error}") from error
    except RecursionError:
        raise _RefusedError("the answer is nested too deeply") from None


def _why(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "the answer breaks off"
    if isinstance(error, _NO_HTTP) and not isinstance(error, OSError):
        return f"the answer is no HTTP: {str(error).strip()[:_SHOWN]}"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason.lower() if reason else type(error).__name__


def tls_context(https: bool, tls: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the TLS settings: the trusted authorities and the client's certificate.

    As in kube-scheduler, `enableHTTPS` without an authority trusts every server; without `enableHTTPS` the
    authorities of the system are trusted. Raises ValueError for settings that contradict each other.
    """
    authority = b64decode(tls["caData"]).decode() if tls.get("caData") else None
    authority_file = None if authority else tls.get("caFile") or None
    has_authority = bool(authority or authority_file)
    if tls.get("insecure") and has_authority:
        raise ValueError("tlsConfig has an authority and is `insecure`: it would not be asked")
    context = ssl.create_default_context(cafile=authority_file, cadata=authority)
    if tls.get("insecure") or (https and not has_authority):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _show(context, tls)
    return context


def _show(context: ssl.SSLContext, tls: Mapping[str, Any]) -> None:
    """Load the client's certificate and key, if there are any. Data wins over files."""
    if tls.get("certData") or tls.get("keyData"):
        # OpenSSL reads certificates from files only; other users cannot read this file, and it is removed at
        # once.
        with tempfile.NamedTemporaryFile() as file:
            file.write(b64decode(tls.get("certData", "")) + b"\n" + b64decode(tls.get("keyData", "")))
            file.flush()
            context.load_cert_chain(file.name)
    elif tls.get("certFile"):
        context.load_cert_chain(tls["certFile"], tls.get("keyFile") or None)
