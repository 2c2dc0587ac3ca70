"""Follows links to the file or folder at their end."""

from __future__ import annotations

import os
from pathlib import Path


def real_path(path: str | Path, *, strict: bool = False) -> Path:
    """Return the absolute path without links. A link to itself stays as it is, where `Path.resolve` raises.

    With `strict` a missing path and a link to itself raise OSError.
    """
    return Path(os.path.realpath(path, strict=strict))
