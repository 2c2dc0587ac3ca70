"""The first positions of codes. A few codes are searched as bytes, since a search in bytes is fastest."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BYTES: Final = 256
"""The number of codes that fit in a byte."""
FEW: Final = 32
"""The most codes that are searched one by one."""

_TEXTS: Final = tuple([bytes((code,)) for code in range(BYTES)])


def as_bytes(codes: NDArray[np.integer[Any]]) -> bytes:
    """Return codes below `BYTES` as a text."""
    return codes.astype(np.uint8).tobytes()


def first_places(text: bytes, most: int) -> dict[int, int]:
    """Return the first position of each code of a text, in order of positions; of at most `most` codes."""
    found: dict[int, int] = {}
    rest = text
    while rest and len(found) < most:
        code = rest[0]
        found[code] = text.index(code)
        rest = rest.translate(None, _TEXTS[code])
    return found


def first_rows(codes: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64]:
    """Return the first positions of the codes below `size`, in ascending order; absent codes are left out."""
    first = np.full(size, -1)
    # Later writes win, so the first row is written last.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return np.sort(first[first >= 0])
