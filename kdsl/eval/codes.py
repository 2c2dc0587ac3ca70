"""Where codes first stand. Few of them are looked for as bytes: a text is the fastest thing to look for a
number in.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BYTES: Final = 256
"""So many codes fit into a text."""
FEW: Final = 32
"""So few codes are looked for one by one."""

_TEXTS: Final = tuple([bytes((code,)) for code in range(BYTES)])


def text_of(codes: NDArray[np.integer[Any]]) -> bytes:
    """Return codes below `BYTES` as a text."""
    return codes.astype(np.uint8).tobytes()


def first_places(text: bytes, most: int) -> dict[int, int]:
    """Return the place where each code of a text first stands, in the order of these places; of `most` codes
    if there are more.
    """
    found: dict[int, int] = {}
    rest = text
    while rest and len(found) < most:
        code = rest[0]
        found[code] = text.index(code)
        rest = rest.translate(None, _TEXTS[code])
    return found


def first_rows(codes: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64]:
    """Return where each of the codes below `size` first stands, in ascending order; those that are nowhere
    are left out.
    """
    first = np.full(size, -1)
    # Of several rows with one code the last that is written counts: the first one.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return np.sort(first[first >= 0])
