"""Codes of which there are few, as bytes: a text is the fastest thing to look for a number in."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FEW: Final = 64
"""So few codes are looked for one by one."""


def text_of(codes: NDArray[np.integer[Any]]) -> bytes:
    """Return codes below 256 as a text."""
    return codes.astype(np.uint8).tobytes()


def first_places(text: bytes, codes: int) -> dict[int, int]:
    """Return the place where each of the codes below `codes` first stands, in the order of these places;
    those that are nowhere are left out.
    """
    found = [(place, code) for code in range(codes) if (place := text.find(code)) >= 0]
    found.sort()
    return {code: place for place, code in found}
