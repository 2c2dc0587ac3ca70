"""Exact Kubernetes quantities: `500m`, `1.5Gi`, `1e3`.

Every amount of a resource is read and compared through this module.

The grammar, the rounding and the canonical text are those of `k8s.io/apimachinery/pkg/api/resource`:

    quantity = [sign] number suffix          number = digits | digits "." [digits] | "." digits
    suffix   = "" | n u m k M G T P E | Ki Mi Gi Ti Pi Ei | ("e" | "E") [sign] digits

Arithmetic is exact, in thousand-millionths of a unit, and bounded: a result beyond the range of int64 units
raises OverflowError, where Kubernetes would wrap around.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

NANOS_PER_UNIT: Final = 10**9
NANOS_PER_MILLI: Final = 10**6
INT64_MAX: Final = 2**63 - 1
MAX_NANOS: Final = INT64_MAX * NANOS_PER_UNIT

_DECIMAL_EXPONENTS: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_SHIFTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = ("", *_BINARY_SHIFTS)

_NUMBER: Final = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))", re.ASCII)
_NUMBER_AND_LETTERS: Final = re.compile(r"([0-9.]+)([A-Za-z]+)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)

# A longer text is a mistake: the largest quantity has 19 digits before the point and 9 behind it.
_MAX_LENGTH: Final = 128


class QuantityFormat(StrEnum):
    """The notation in which a quantity was written and is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount: `nanos` thousand-millionths of a unit.

    Equality, order and hash use the amount only: `1` and `1000m` are equal. OverflowError beyond 2^63 - 1
    units, on either side of zero.
    """

    nanos: int
    format: QuantityFormat = field(default=QuantityFormat.DECIMAL_SI, compare=False)

    def __post_init__(self) -> None:
        if not -MAX_NANOS <= self.nanos <= MAX_NANOS:
            raise OverflowError("a quantity holds at most 2^63 - 1 units")

    @staticmethod
    def of(units: int) -> Quantity:
        """Return `units` whole units."""
        return Quantity(units * NANOS_PER_UNIT)

    @staticmethod
    def of_milli(milli: int) -> Quantity:
        """Return `milli` thousandths of a unit."""
        return Quantity(milli * NANOS_PER_MILLI)

    @staticmethod
    def capped(nanos: int) -> Quantity:
        """Return `nanos` thousand-millionths of a unit, or the nearest amount that a quantity can hold."""
        return Quantity(max(-MAX_NANOS, min(nanos, MAX_NANOS)))

    @property
    def is_zero(self) -> bool:
        return self.nanos == 0

    @property
    def is_integer(self) -> bool:
        return self.nanos % NANOS_PER_UNIT == 0

    def as_integer(self) -> int:
        """Return the amount in units; ValueError where it is not a whole number."""
        if not self.is_integer:
            raise ValueError(f"quantity `{self}` is not a whole number")
        return self.nanos // NANOS_PER_UNIT

    def value(self) -> int:
        """Return the amount in units, rounded up (away from zero) as Kubernetes' `Value` does."""
        return _divide_up(self.nanos, NANOS_PER_UNIT)

    def quotient(self, other: Quantity) -> int:
        """Divide by another quantity, truncating toward zero; ZeroDivisionError where it is zero."""
        return divide_toward_zero(self.nanos, other.nanos)

    def ratio(self, other: Quantity) -> float:
        """Return this divided by `other`, correctly rounded; ZeroDivisionError where it is zero."""
        return self.nanos / other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, other.format if self.nanos == 0 else self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, other.format if self.nanos == 0 else self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format)

    __rmul__ = __mul__

    def __truediv__(self, divisor: int) -> Quantity:
        """Divide by an integer; digits beyond the thousand-millionth are cut off, toward zero."""
        return Quantity(divide_toward_zero(self.nanos, divisor), self.format)

    def __str__(self) -> str:
        """Return the canonical text, as Kubernetes prints it: `1.5Gi` is `1536Mi`, `0.25` is `250m`."""
        if self.nanos == 0:
            return "0"
        units, rest = divmod(self.nanos, NANOS_PER_UNIT)
        if self.format is QuantityFormat.BINARY_SI and rest == 0 and abs(units) >= 1024:
            return _binary_text(units)
        return _decimal_text(self.nanos, self.format)

    @property
    def written(self) -> str:
        """Return the text as people write it: canonical, but whole decimal amounts in digits, as `7000`."""
        is_binary = self.format is QuantityFormat.BINARY_SI and abs(self.nanos) >= 1024 * NANOS_PER_UNIT
        is_digits = self.is_integer and not is_binary
        return str(self.nanos // NANOS_PER_UNIT) if is_digits else str(self)


ZERO: Final = Quantity(0)


def divide_toward_zero(dividend: int, divisor: int) -> int:
    """Divide as Go and CEL do: -7 by 2 is -3. ZeroDivisionError where the divisor is zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _divide_up(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor) if dividend >= 0 else dividend // divisor


@lru_cache(maxsize=16384)
def parse_quantity(text: str) -> Quantity:
    """Read a quantity; raises ValueError with a text for the user where `text` is not one.

    Digits beyond the ninth decimal place are rounded away from zero. As in Kubernetes, a binary quantity
    beyond int64 is capped there (`8Ei` is 2^63 - 1); a decimal one is an error.
    """
    if len(text) > _MAX_LENGTH:
        raise ValueError(f"a quantity of {len(text)} characters is not a quantity")
    match = _NUMBER.match(text)
    if match is None:
        raise ValueError(_no_number(text))
    sign, whole, places, bare_places = match.groups()
    places = bare_places or places or ""
    mantissa = int((whole or "") + places)
    scale, shift, quantity_format = _read_suffix(text, match.end())
    nanos = _scale_up(mantissa << shift, scale + 9 - len(places))
    if nanos > MAX_NANOS:
        if quantity_format is not QuantityFormat.BINARY_SI:
            raise ValueError(f"quantity `{text}` is beyond 2^63 - 1")
        nanos = MAX_NANOS
    if quantity_format is QuantityFormat.BINARY_SI and nanos < NANOS_PER_UNIT:
        quantity_format = QuantityFormat.DECIMAL_SI
    return Quantity(-nanos if sign == "-" else nanos, quantity_format)


def _read_suffix(text: str, start: int) -> tuple[int, int, QuantityFormat]:
    """Return decimal exponent, binary shift and format for the suffix of `text` that begins at `start`."""
    suffix = text[start:]
    if suffix in _DECIMAL_EXPONENTS:
        return _DECIMAL_EXPONENTS[suffix], 0, QuantityFormat.DECIMAL_SI
    if suffix in _BINARY_SHIFTS:
        return 0, _BINARY_SHIFTS[suffix], QuantityFormat.BINARY_SI
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is not None:
        return int(exponent[1]), 0, QuantityFormat.DECIMAL_EXPONENT
    raise ValueError(_unknown_suffix(text, text[:start], suffix))


def _scale_up(mantissa: int, exponent: int) -> int:
    """Return `mantissa` times ten to the `exponent`, rounded up; a result out of range is one just
    beyond it.
    """
    if mantissa == 0 or exponent == 0:
        return mantissa
    if exponent > 0:
        return mantissa * 10**exponent if exponent <= 32 else MAX_NANOS + 1
    # INVARIANT: a mantissa has at most _MAX_LENGTH digits, so the power stays small whatever the text says.
    return -(-mantissa // 10**-exponent) if -exponent <= _MAX_LENGTH else 1


def _no_number(text: str) -> str:
    if not text:
        return "an empty text is not a quantity"
    if text != text.strip():
        return f"quantity `{text}` has white space around it: did you mean `{text.strip()}`?"
    return f"`{text}` is not a quantity: it must begin with a number, as in `500m` or `1Gi`"


def _unknown_suffix(text: str, number: str, suffix: str) -> str:
    meant = _meant_suffixes(suffix)
    hint = (
        f"did you mean {' or '.join(f'`{number}{one}`' for one in meant)}?"
        if meant
        else "known are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and exponents such as e3"
    )
    return f"`{text}` is not a quantity, `{suffix}` is no suffix: {hint}"


def meant_quantity(text: str) -> str:
    """Return the quantity that `text`, a number and letters, probably means; an empty text if none is near.

    `4GiB` means `4Gi`, `4GB` means `4G`.
    """
    match = _NUMBER_AND_LETTERS.fullmatch(text)
    meant = _meant_suffixes(match[2]) if match else ()
    return f"{match[1]}{meant[0]}" if match and meant else ""


def _meant_suffixes(suffix: str) -> tuple[str, ...]:
    """Return the suffixes that `GB`, `gib`, `K`, `mb` or ` Gi` probably mean."""
    bare = suffix.strip()
    if bare in _DECIMAL_EXPONENTS or bare in _BINARY_SHIFTS:
        return (bare,)
    letter = bare[:1].upper()
    tail = bare[1:].lower()
    if f"{letter}i" not in _BINARY_SHIFTS or tail not in ("", "b", "i", "ib", "bytes"):
        return ()
    binary = f"{letter}i"
    decimal = "k" if letter == "K" else letter
    return (binary,) if tail.startswith("i") else (decimal, binary)


def _binary_text(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"


def _decimal_text(nanos: int, quantity_format: QuantityFormat) -> str:
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos //= 1000
        exponent += 3
    if quantity_format is QuantityFormat.DECIMAL_EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIXES[exponent]}"
