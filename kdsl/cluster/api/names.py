"""The syntax of Kubernetes names and labels.

Validation warns about violations; selectors drop terms with them, as kube-scheduler does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_SUBDOMAIN: Final = 253
"""The most characters in the name of a pod or a node."""

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DNS_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_LABEL_PART: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)


@lru_cache(maxsize=4096)
def is_dns_label(text: str) -> bool:
    """Return whether `text` is a valid name of a namespace or a container."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Return whether `text` is a valid name of a pod or a node."""
    return len(text) <= MAX_SUBDOMAIN and _DNS_SUBDOMAIN.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def is_label_key(text: str) -> bool:
    """Return whether `text` is a qualified name: an optional DNS prefix and `/`, then up to 63 characters."""
    prefix, slash, name = text.rpartition("/")
    return _LABEL_PART.fullmatch(name) is not None and (not slash or is_dns_subdomain(prefix))


@lru_cache(maxsize=16384)
def is_label_value(text: str) -> bool:
    """Return whether `text` is a valid value of a label: empty, or up to 63 characters."""
    return not text or _LABEL_PART.fullmatch(text) is not None
