"""The generator of Go's `math/rand`, so that traces are prepared as programs in Go prepare them.

It is an additive lagged Fibonacci generator over 64-bit words: x[n] = x[n-607] + x[n-273]. Go starts it from
a seed and a table of 607 words, which are the state of the same generator after 7.8e12 steps from seed 1.
`_table` computes them: a step is a multiplication by x modulo x^607 - x^334 - 1, so that many steps are a
power of x.
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


@cache
def _table() -> tuple[int, ...]:
    """Return the words that Go mixes into every seed."""
    words = _congruential(1, (20, 10))
    # The generator overwrites its words from the middle down: the oldest one is overwritten first.
    first = _LENGTH - _TAP - 1
    oldest = np.array([words[(first - age) % _LENGTH] for age in range(_LENGTH)], np.uint64)
    table = [0] * _LENGTH
    power = _power(_COOKED_STEPS)
    for age in range(_LENGTH):
        table[(first - _COOKED_STEPS - age) % _LENGTH] = int((power * oldest).sum(dtype=np.uint64))
        power = _reduced(np.concatenate((np.zeros(1, np.uint64), power)))
    return tuple(table)


class GoRandom:
    """`rand.New(rand.NewSource(seed))`: methods are those of Go's `Rand`, and draw as many words."""

    def __init__(self, seed: int) -> None:
        words = _congruential(seed, (40, 20))
        self._words = [(word ^ mixed) & _MASK for word, mixed in zip(words, _table(), strict=True)]
        self._tap, self._feed = 0, _LENGTH - _TAP

    def uint64(self) -> int:
        self._tap = (self._tap - 1) % _LENGTH
        self._feed = (self._feed - 1) % _LENGTH
        word = self._words[self._feed] = (self._words[self._feed] + self._words[self._tap]) & _MASK
        return word

    def int63(self) -> int:
        return self.uint64() & (_MASK >> 1)

    def uint32(self) -> int:
        return self.int63() >> 31

    def int31(self) -> int:
        return self.int63() >> 32

    def intn(self, below: int) -> int:
        """Return a number from 0 up to but not including `below`, which is at most 2^31 - 1."""
        if below & (below - 1) == 0:
            return self.int31() & (below - 1)
        largest = 2**31 - 1 - 2**31 % below
        found = self.int31()
        while found > largest:
            found = self.int31()
        return found % below

    def float64(self) -> float:
        """Return a number from 0 up to but not including 1."""
        return self.int63() / 2**63

    def perm(self, size: int) -> list[int]:
        """Return the numbers below `size` in random order."""
        found = [0] * size
        for at in range(size):
            other = self.intn(at + 1)
            found[at] = found[other]
            found[other] = at
        return found

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return items as `Shuffle` would order them."""
        found = list(items)
        for at in range(len(found) - 1, 0, -1):
            other = self._below(at + 1)
            found[at], found[other] = found[other], found[at]
        return found

    def _below(self, below: int) -> int:
        """Return `int31n`, the unexported draw of `Shuffle`: a product; its low half shows a bias."""
        product = self.uint32() * below
        low = product & 0xFFFFFFFF
        if low < below:
            least = (2**32 - below) % below
            while low < least:
                product = self.uint32() * below
                low = product & 0xFFFFFFFF
        return product >> 32
