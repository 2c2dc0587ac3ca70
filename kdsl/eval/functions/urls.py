"""URLs: Go's `net/url`, as Kubernetes uses it.

A text is a URL if Go's `ParseRequestURI` accepts it; its parts are those of Go's `Parse`, which handles
fragments.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from ipaddress import AddressValueError, IPv6Address

from kdsl.eval.values import EvalError, Url, Value

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT = re.compile(r"(?::[0-9]*)?")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST_ESCAPE = re.compile(r"%(?!25|[89A-Fa-f][0-9A-Fa-f])")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_HOST = re.compile(r"""[A-Za-z0-9._~!$&'()*+,;=:\[\]<>"%\u0080-\U0010ffff-]*""")
_UNRESERVED = string.ascii_letters + string.digits + "-_.~"
_IN_PATH = frozenset((_UNRESERVED + "$&+,/:;=@").encode())
_ENCODED_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@\[\]/%-]*")


class _UrlError(ValueError):
    """The text is no URL; the message is the reason."""


def parse_url(text: str) -> Url:
    """Read a URL or an absolute path."""
    try:
        _parse(text, is_request=True)
        whole, _, fragment = text.partition("#")
        return _parse(whole, is_request=False, fragment=_unescape(fragment))
    except _UrlError as error:
        raise EvalError(f"not a URL: {error}") from None


def url_problem(text: str) -> str | None:
    """Return why the text is no URL; None if it is one."""
    try:
        _parse(text, is_request=True)
    except _UrlError as error:
        return str(error)
    return None


def _parse(text: str, is_request: bool, fragment: str = "") -> Url:
    if _CONTROL.search(text):
        raise _UrlError("control character in it")
    if not text and is_request:
        raise _UrlError("it is empty")
    if text == "*":
        return Url(path="*")
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, opaque=rest, query=query, fragment=fragment)
        if is_request:
            raise _UrlError("neither absolute nor an absolute path")
        if ":" in rest.partition("/")[0]:
            raise _UrlError("the first segment of a path cannot contain a colon")
    user = host = ""
    if rest.startswith("//") and (scheme or (not is_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(authority)
        rest = slash + path
    return Url(scheme, user, host, _escaped_path(rest), query, fragment)


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise _UrlError("the scheme is missing")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("", text)


def _authority(text: str) -> tuple[str, str]:
    user, _, host = text.rpartition("@")
    if not _USER.fullmatch(user):
        raise _UrlError("invalid user")
    _unescape(user)
    bracketed, bracket, port = host.rpartition("]")
    if host.startswith("["):
        if not bracket:
            raise _UrlError("`]` is missing in the host")
        _check_literal(bracketed[1:])
    else:
        port = host[host.rindex(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        raise _UrlError("invalid port")
    if not _HOST.fullmatch(host) or _HOST_ESCAPE.search(host.partition("%25")[0]):
        raise _UrlError("invalid character in the host")
    return user, _unescape(host)


def _check_literal(text: str) -> None:
    address, zoned, zone = text.partition("%25")
    try:
        IPv6Address(address)
    except AddressValueError:
        raise _UrlError("invalid IPv6 address in the host") from None
    if zoned and not zone:
        raise _UrlError("empty zone in the host")


def _bytes(text: str) -> bytes:
    """Return the bytes that the text stands for."""
    if _BROKEN_ESCAPE.search(text):
        raise _UrlError("invalid escape")
    encoded = text.encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), encoded)


def _unescape(text: str) -> str:
    return _bytes(text).decode("utf-8", "replace")


def _escaped_path(path: str) -> str:
    """Return the path unchanged if it is encoded properly, else encoded again."""
    plain = _bytes(path)
    if _ENCODED_PATH.fullmatch(path):
        return path
    return "".join(chr(byte) if byte in _IN_PATH else f"%{byte:02X}" for byte in plain)


def hostname(url: Url) -> str:
    """Return the host without its port, and without the brackets of IPv6."""
    host = url.host
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host[: -len(port(url)) - 1] if _has_port(host) else host


def port(url: Url) -> str:
    """Return the port, empty if there is none."""
    return url.host.rpartition(":")[2] if _has_port(url.host) else ""


def _has_port(host: str) -> bool:
    return host.rfind(":") > host.rfind("]")


def query(url: Url) -> dict[str, tuple[str, ...]]:
    """Return the values of every key; parts that are not encoded properly are passed over, as in Go."""
    found: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        if not part or ";" in part:
            continue
        key, _, value = part.replace("+", " ").partition("=")
        if not _BROKEN_ESCAPE.search(part):
            found.setdefault(_unescape(key), []).append(_unescape(value))
    return {key: tuple(values) for key, values in found.items()}


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "url": parse_url,
    "isURL": lambda text: url_problem(text) is None,
    "getScheme": lambda url: url.scheme,
    "getHost": lambda url: url.host,
    "getHostname": hostname,
    "getPort": port,
    "getEscapedPath": lambda url: url.path,
    "getQuery": query,
}
