"""Reads the YAML files that ship with the checker, by libyaml where there is one: ten times faster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml_data(path: Path) -> Any:
    """Return the document of one of our own files; what users write is read with places and all mistakes."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
