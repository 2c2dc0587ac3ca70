"""CEL's math extension, `math.log` and `math.exp`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from kdsl.eval.functions.collections import extreme
from kdsl.eval.values import INT_MAX, UINT_MAX, EvalError, UInt, Value, checked_int, kind_of

_NUMBERS = ("int", "uint", "double")


def _extreme(best_of: Callable[[Value], Value], name: str) -> Callable[..., Value]:
    """Return `math.greatest` or `math.least`: the first of the best arguments, or items of one list."""
    pick = extreme(best_of, name)

    def best(*args: Value) -> Value:
        items = args[0] if len(args) == 1 and kind_of(args[0]) == "list" else args
        if any(kind_of(item) not in _NUMBERS for item in items):
            raise EvalError(f"no such overload: {name}")
        return pick(items)

    return best


def _whole(round_to: Callable[[float], int]) -> Callable[[float], float]:
    """Return `round_to` for doubles: NaN and the infinities stay as they are, as does the sign of zero."""

    def rounded(value: float) -> float:
        return math.copysign(float(round_to(value)), value) if math.isfinite(value) else value

    return rounded


def _round(value: float) -> int:
    """Round half away from zero, without the error of adding 0.5."""
    whole = math.trunc(value)
    return whole + int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else whole


def _sign_double(value: float) -> float:
    """Return -1, 0 or 1, and NaN for NaN. Zero has no sign in the result."""
    return value if math.isnan(value) else float((value > 0) - (value < 0))


def square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _logarithm(value: float) -> float:
    if value > 0:
        return math.log(value)
    return -math.inf if value == 0 else math.nan


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _signed(bits: int) -> int:
    """Return the int that 64 bits stand for."""
    return bits if bits <= INT_MAX else bits - UINT_MAX - 1


def _shift(move: Callable[[int, int], int], result: Callable[[int], int]) -> Callable[[int, int], int]:
    """Return a shift of 64 bits; a shift by 64 or more gives 0."""

    def shift(value: int, places: int) -> int:
        if places < 0:
            raise EvalError(f"negative offset: {places}")
        return result(move(value & UINT_MAX, places) & UINT_MAX if places < 64 else 0)

    return shift


def _of_bits(word: str, combine: Callable[[int, int], int]) -> dict[str, Callable[..., Value]]:
    return {
        f"math_{word}_int": combine,
        f"math_{word}_uint": lambda left, right: UInt(combine(int(left), int(right))),
    }


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "math.greatest": _extreme(max, "math.greatest"),
    "math.least": _extreme(min, "math.least"),
    "math_abs_int": lambda value: checked_int(abs(value)),
    "math_abs_uint": lambda value: value,
    "math_abs_double": abs,
    "math_sign_int": lambda value: (value > 0) - (value < 0),
    "math_sign_uint": lambda value: UInt(value > 0),
    "math_sign_double": _sign_double,
    "math.sqrt": square_root,
    "math.log": _logarithm,
    "math.exp": _exponential,
    "math.ceil": _whole(math.ceil),
    "math.floor": _whole(math.floor),
    "math.round": _whole(_round),
    "math.trunc": _whole(math.trunc),
    "math.isNaN": math.isnan,
    "math.isInf": math.isinf,
    "math.isFinite": math.isfinite,
    **_of_bits("bitAnd", operator.and_),
    **_of_bits("bitOr", operator.or_),
    **_of_bits("bitXor", operator.xor),
    "math_bitNot_int": operator.invert,
    "math_bitNot_uint": lambda value: UInt(int(value) ^ UINT_MAX),
    "math_bitShiftLeft_int": _shift(operator.lshift, _signed),
    "math_bitShiftLeft_uint": _shift(operator.lshift, UInt),
    "math_bitShiftRight_int": _shift(operator.rshift, _signed),
    "math_bitShiftRight_uint": _shift(operator.rshift, UInt),
}
