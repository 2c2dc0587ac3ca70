"""Reads YAML files of kdsl's own, beside the module that uses them, into a type.

A mistake in such a file is a developer's and raises ValueError with its place. Files of users are read with
places and all mistakes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""By libyaml where there is one: ten times faster."""

T = TypeVar("T")


def read_data_file(path: Path) -> Any:
    """Return the document of a file as it is."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


def typed(document: object, into: type[T], what: str) -> T:
    """Return a document as a value of a type; `what` is its name in the text of a ValueError."""
    try:
        return msgspec.convert(document, into)
    except msgspec.ValidationError as error:
        raise ValueError(f"{what}: {error}") from None
