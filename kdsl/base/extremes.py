"""The least and the largest number of an array, and whether all are in a range.

Their places are found three times as fast as the numbers themselves by `min` or `numpy.minimum.reduce`: for
a short array, those take longer to begin than to read it.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def least_of(numbers: NDArray[Any]) -> Any:
    """Return the least number as one of Python; ValueError if there is none."""
    return numbers.item(numbers.argmin())


def largest_of(numbers: NDArray[Any]) -> Any:
    """Return the largest number as one of Python; ValueError if there is none."""
    return numbers.item(numbers.argmax())


def are_within(numbers: NDArray[Any], most: int) -> bool:
    """Return whether all numbers are in 0..`most`."""
    return not numbers.size or bool(
        numbers.item(numbers.argmin()) >= 0 and numbers.item(numbers.argmax()) <= most
    )
