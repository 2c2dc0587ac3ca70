"""The generator of Go's `math/rand`, so that traces are prepared as programs in Go prepare them.

It is an additive lagged Fibonacci generator over 64-bit words: x[n] = x[n-607] + x[n-273]. Go starts it from a seed
and a table of 607 words, which are the state of the same generator after 7.8e12 steps from seed 1. `_table` computes
them: a step is a multiplication by x modulo x^607 - x^334 - 1, so that many steps are a power of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_LENGTH: Final = 607
_TAP: Final = 273
_MODULUS: Final = 2**31 - 1
_WARM_UP: Final = 20
_COOKED_STEPS: Final = 7_800_000_000_000
_MASK: Final = 2**64 - 1

_Words = NDArray[np.uint64]


def _congruential(seed: int, shifts: tuple[int, int]) -> list[int]:
    """Return 607 words of the multiplicative generator 48271 mod 2^31 - 1, three draws in each."""
    seed %= _MODULUS
    at = seed or 89482311
    for _ in range(_WARM_UP):
        at = 48271 * at % _MODULUS
    words = []
    for _ in range(_LENGTH):
        first = at = 48271 * at % _MODULUS
        second = at = 48271 * at % _MODULUS
        at = 48271 * at % _MODULUS
        words.append((first << shifts[0]) ^ (second << shifts[1]) ^ at)
    return words


def _reduced(product: _Words) -> _Words:
    """Return a polynomial of degree below 1213 modulo x^607 - x^334 - 1."""
    for _ in range(3):
        high = product[_LENGTH:]
        low = np.zeros(2 * _LENGTH, np.uint64)
        low[:_LENGTH] = product[:_LENGTH]
        low[: len(high)] += high
        low[_LENGTH - _TAP : _LENGTH - _TAP + len(high)] += high
        product = low
    return product[:_LENGTH]


def _power(steps: int) -> _Words:
    """Return x^steps modulo x^607 - x^334 - 1, with coefficients modulo 2^64."""
    result = np.zeros(_LENGTH, np.uint64)
    result[0] = 1
    for bit in bin(steps)[2:]:
        result = _reduced(np.convolve(result, result))
        if bit == "1":
            result = _reduced(np.concatenate((np.zeros(1, np.uint64), result)))
    return result
