"""Few codes as bytes: a text is the fastest thing to look for a number in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BYTES: Final = 256
"""So many codes fit into a text."""

_TEXTS: Final = tuple(bytes((code,)) for code in range(BYTES))


def text_of(codes: NDArray[np.integer[Any]]) -> bytes:
    """Return codes below `BYTES` as a text."""
    return codes.astype(np.uint8).tobytes()


def first_places(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield each code of a text with the place where it first stands, in the order of these places.

    It goes through the text once for each code that it yields: take no more than a few.
    """
    rest = text
    while rest:
        code = rest[0]
        yield code, text.index(code)
        rest = rest.translate(None, _TEXTS[code])
