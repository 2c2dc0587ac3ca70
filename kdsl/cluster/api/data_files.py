"""The documents of kdsl's own YAML files as values of types."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def typed(document: object, into: type[T], what: str) -> T:
    """Return a document as a value of a type. A mistake in it is a developer's: ValueError, with its place.
    `what` is the name of the document in the text.
    """
    try:
        return msgspec.convert(document, into)
    except msgspec.ValidationError as error:
        raise ValueError(f"{what}: {error}") from None
