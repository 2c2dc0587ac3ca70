"""The least and the largest number of an array. The methods `min` and `max` call these from Python, at twice
the cost for a short array.
"""

from __future__ import annotations

from typing import Final

import numpy as np

least_of: Final = np.minimum.reduce
"""Returns the least number; ValueError if there is none and no `initial`."""
largest_of: Final = np.maximum.reduce
"""Returns the largest number; ValueError if there is none and no `initial`."""
