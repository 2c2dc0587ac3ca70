"""The least and the largest number of an array, and whether all are in a range. The methods `min` and `max`
call these reductions from Python, at twice the cost for a short array.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

least_of: Final = np.minimum.reduce
"""Returns the least number; ValueError if there is none and no `initial`."""
largest_of: Final = np.maximum.reduce
"""Returns the largest number; ValueError if there is none and no `initial`."""


def are_within(numbers: NDArray[np.int64], most: int) -> bool:
    """Return whether all numbers are in 0..`most`."""
    # As unsigned numbers, negative ones are the largest.
    return bool(largest_of(numbers.view(np.uint64), initial=0) <= most)
