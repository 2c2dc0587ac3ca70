"""The syntax of names, labels and keys, and the server's texts for invalid ones."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PORT: Final = re.compile(r"[-a-z0-9]+")

_LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_SERVICE_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_CONFIG_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def label_name(text: str) -> list[str]:
    """Return the errors in the name of a namespace, container or volume."""
    return _too_long(text, 63) + ([] if _LABEL.fullmatch(text) else [_LABEL_TEXT])


def subdomain(text: str) -> list[str]:
    """Return the errors in the name of most kinds of objects."""
    return _too_long(text, 253) + ([] if _SUBDOMAIN.fullmatch(text) else [_SUBDOMAIN_TEXT])


def service_name(text: str) -> list[str]:
    """Return the errors in the name of a Service."""
    return _too_long(text, 63) + ([] if _SERVICE.fullmatch(text) else [_SERVICE_TEXT])


def qualified(text: str) -> list[str]:
    """Return the errors in a key: `name`, or `prefix/name`."""
    parts = text.split("/")
    if len(parts) > 2:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_QUALIFIED_TEXT} {optional}"]
    found: list[str] = []
    if len(parts) == 2:
        prefix = parts[0]
        found += [f"prefix part {why}" for why in (subdomain(prefix) if prefix else ["must be non-empty"])]
    name = parts[-1]
    found += [f"name part {why}" for why in (_too_long(name, 63) if name else ["must be non-empty"])]
    return found if _QUALIFIED.fullmatch(name) else [*found, f"name part {_QUALIFIED_TEXT}"]


def label_value(text: str) -> list[str]:
    """Return the errors in the value of a label."""
    return _too_long(text, 63) + ([] if not text or _QUALIFIED.fullmatch(text) else [_VALUE_TEXT])


def config_key(text: str) -> list[str]:
    """Return the errors in a key of a ConfigMap or Secret."""
    found = _too_long(text, 253)
    if not _CONFIG_KEY.fullmatch(text):
        found.append(_CONFIG_KEY_TEXT)
    if text == ".":
        found.append("must not be '.'")
    elif text == "..":
        found.append("must not be '..'")
    elif text.startswith(".."):
        found.append("must not start with '..'")
    return found


def port_name(text: str) -> list[str]:
    """Return the errors in the name of a port."""
    found = _too_long(text, 15)
    if not _PORT.fullmatch(text):
        found.append("must contain only alphanumeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text and (text[0] == "-" or text[-1] == "-"):
        found.append("must not begin or end with a hyphen")
    return found


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []
