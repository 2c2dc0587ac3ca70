"""Places inside documents, as findings about objects and configurations name them."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""A place inside a document: names of fields, keys of maps and indexes of lists."""

_BARE_NAME: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def path_text(path: Path) -> str:
    """Return a path as text: `spec.containers[0].resources.requests["nvidia.com/gpu"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _BARE_NAME.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text
