"""Temporary files for TLS contexts, which load certificates and keys from files only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Yield a path to read the content from. The file is in memory where the system allows it, so no disk has
    it.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kdsl")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content.pem"
        path.touch(mode=0o600)
        path.write_bytes(content)
        yield str(path)
