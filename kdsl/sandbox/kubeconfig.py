"""The kubeconfig of a sandbox."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path

import yaml

CLUSTER = "kdsl-sandbox"


def kubeconfig_text(url: str, authority: bytes, tokens: Mapping[str, str]) -> str:
    """Return a kubeconfig with one context for each user; the current one is that of `admin`."""
    encoded = base64.b64encode(authority).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": {"server": url, "certificate-authority-data": encoded}}],
        "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
        "contexts": [
            {"name": _context(name), "context": {"cluster": CLUSTER, "user": name, "namespace": "default"}}
            for name in tokens
        ],
        "current-context": _context("admin"),
    }
    return yaml.safe_dump(document, sort_keys=False)


def _context(user: str) -> str:
    return CLUSTER if user == "admin" else f"{CLUSTER}-{user}"


def write_private(path: Path, text: str | bytes) -> None:
    """Write a file that only its owner may read; an older one is replaced whole.

    Raises OSError where it cannot be written.
    """
    data = text.encode() if isinstance(text, str) else text
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
