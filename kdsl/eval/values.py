"""Run-time values of expressions, and their laws for every back end.

| CEL type | Python value |
|---|---|
| `null_type`, `bool`, `double`, `string`, `bytes` | None, bool, float, str, bytes |
| `int`, `uint` | int within 64 bits; `UInt`, an int of its own class |
| `list` | tuple (or list) |
| `map` | a mapping whose keys went through `to_key` |
| `timestamp`, `duration` | `Timestamp`, `Duration` |
| `optional` | `Optional` |
| `type` | `kdsl.check.model.types.Type` without arguments |
| `quantity`, `resources`, `semver`, views | the classes of `kdsl.base` and `kdsl.cluster` |
| `ip`, `cidr` | the addresses and interfaces of `ipaddress`; no IPv4 address is held as IPv6 |
| `url`, `format` | `Url`, `Format` |

An error is an exception, `EvalError`: raising costs only where it happens, and `&&`, `||`, `all` and `exists`
absorb it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any, TypeVar

from msgspec import Struct

from kdsl.base.quantity import Quantity
from kdsl.base.reasons import shortened
from kdsl.base.resources import Resources
from kdsl.base.semver import Semver
from kdsl.base.span import Span
from kdsl.base.times import DURATION_MAX, DURATION_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN
from kdsl.check.model.types import Type

T = TypeVar("T")
Text = TypeVar("Text", str, bytes)
Value = Any
"""A run-time value. The checker has proved its type, or the function that takes it checks its class."""

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1

MAX_TEXT = 1 << 20
"""The most characters or bytes of one value; a longer result is an error."""
MAX_ITEMS = 1 << 20
"""The most items of one list; a longer result is an error."""


class EvalError(Exception):
    """An expression has no value. The message is lower case, names the cause, and is not longer than a
    reason.

    `code` are the lines of Python that were running in a plugin's function which raised. `span` is the place
    of the `let` that failed; None if none did.
    """

    span: Span | None = None

    def __init__(self, message: str, code: tuple[tuple[str, int, str], ...] = ()) -> None:
        super().__init__(message)
        self.code = code

    @property
    def message(self) -> str:
        return shortened(str(self))


class OutOfSteps(EvalError):  # noqa: N818 - no message has its name
    """A rule took more steps than it may."""


class BudgetError(EvalError):
    """A rule exceeded its share of the profile's budget for a pod: the attempt ends."""


class UInt(int):
    """An unsigned integer: 0 to 2**64 - 1."""

    __slots__ = ()
    __str__ = int.__repr__

    def __repr__(self) -> str:
        """Return the literal, which differs from that of an integer."""
        return f"{self}u"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time; `ns` counts nanoseconds since the Unix epoch, within the years 1 to 9999."""

    ns: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in nanoseconds, within 64 bits."""

    ns: int


class Optional(Struct, frozen=True):
    """A value that may be missing. `value` is None if `present` is false."""

    value: Value
    present: bool = True


NONE = Optional(None, present=False)


class TotalMap(dict[str, Value]):
    """A map of maps: look-ups find an empty map where it has no entry, while `in` finds nothing."""

    __slots__ = ()

    def __missing__(self, key: str) -> Mapping[Value, Value]:
        return _EMPTY


_EMPTY: Mapping[Value, Value] = {}


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL. `path` is percent-encoded, `query` as it was written, `host` may have a port."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""
    opaque: str = ""

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        parts = (
            f"{self.scheme}:" if self.scheme else "",
            f"//{user}{self.host}" if user or self.host else "",
            self.opaque or self.path,
            f"?{self.query}" if self.query else "",
            f"#{self.fragment}" if self.fragment else "",
        )
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Format:
    """A named format of strings; `problems` returns the reasons why a string is invalid."""

    name: str
    problems: Callable[[str], list[str]] = field(compare=False, repr=False)


class BoolKey(Enum):
    """A bool among the keys of a map, since Python takes True and 1 for the same key."""

    FALSE = False
    TRUE = True


_KEYS = frozenset((int, UInt, str))
_LOOKUPS = frozenset((int, UInt, str, float))


def to_key(value: Value) -> Value:
    """Return the key for `value` in a map; a double has the key of the integer it equals."""
    if value.__class__ in _LOOKUPS:
        return value
    if value is True:
        return BoolKey.TRUE
    if value is False:
        return BoolKey.FALSE
    raise EvalError(f"unsupported key type: {kind_of(value)}")


def from_key(key: Value) -> Value:
    """Return the value that `key` stands for."""
    return key.value if key.__class__ is BoolKey else key


def keys_of(mapping: Mapping[Value, Value]) -> list[Value]:
    """Return the keys of a map as values."""
    return [from_key(key) for key in mapping]


_KINDS: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    tuple: "list",
    list: "list",
    dict: "map",
    Timestamp: "timestamp",
    Duration: "duration",
    Optional: "optional",
    Type: "type",
    Quantity: "quantity",
    Resources: "resources",
    Semver: "semver",
    IPv4Address: "ip",
    IPv6Address: "ip",
    IPv4Interface: "cidr",
    IPv6Interface: "cidr",
    Url: "url",
    Format: "format",
}


def kind_of(value: Value) -> str:
    """Return the name of the value's type without arguments."""
    return kind_of_class(value.__class__)


def kind_of_class(cls: type) -> str:
    """Return the name of the type that values of a class have, without arguments; cached."""
    kind = _KINDS.get(cls)
    if kind is None:
        if issubclass(cls, Mapping):
            kind = "map"
        elif issubclass(cls, Sequence):
            kind = "list"
        else:
            kind = next((_KINDS[base] for base in cls.__mro__ if base in _KINDS), cls.__name__)
        _KINDS[cls] = kind
    return kind


def checked_int(value: int) -> int:
    """Return `value` if it fits an int."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise overflow()


def overflow() -> EvalError:
    """Return the error of an int that is out of range."""
    return EvalError("integer overflow")


def checked_uint(value: int) -> UInt:
    """Return `value` as an uint if it fits."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvalError("unsigned integer overflow")


def checked_duration(ns: int) -> Duration:
    if DURATION_MIN <= ns <= DURATION_MAX:
        return Duration(ns)
    raise EvalError("duration out of range")


def checked_timestamp(ns: int) -> Timestamp:
    if TIMESTAMP_MIN <= ns <= TIMESTAMP_MAX:
        return Timestamp(ns)
    raise EvalError("timestamp out of range")


def checked_text(value: Text) -> Text:
    """Return a string or bytes if it is not longer than `MAX_TEXT`."""
    if len(value) <= MAX_TEXT:
        return value
    unit = "bytes" if isinstance(value, bytes) else "characters"
    raise EvalError(f"a text would be longer than {MAX_TEXT} {unit}")


def checked_list(items: Iterable[Value], count: int) -> tuple[Value, ...]:
    """Return the items as a list if there may be `count` of them."""
    if count > MAX_ITEMS:
        raise EvalError(f"a list would have more than {MAX_ITEMS} items")
    return tuple(items)


def to_map(entries: Iterable[tuple[Value, Value]]) -> dict[Value, Value]:
    """Build a map; a repeated key is an error."""
    result: dict[Value, Value] = {}
    for key, value in entries:
        if key.__class__ not in _KEYS:
            if key.__class__ is not bool:
                raise EvalError(f"unsupported key type: {kind_of(key)}")
            key = to_key(key)
        if key in result:
            raise EvalError(f"repeated key: {from_key(key)!r}")
        result[key] = value
    return result


def reading(parse: Callable[..., T]) -> Callable[..., T]:
    """Make it an error of the expression that a function cannot read a text."""

    def read(*args: Value) -> T:
        try:
            return parse(*args)
        except ValueError as error:
            raise EvalError(str(error)) from None

    return read


def succeeds(parse: Callable[..., Value]) -> Callable[..., bool]:
    """Return whether a function returns a value, for functions that raise EvalError otherwise."""

    def has_value(*args: Value) -> bool:
        try:
            parse(*args)
        except EvalError:
            return False
        return True

    return has_value


_PLAIN = frozenset((type(None), bool, int, UInt, float, str, bytes, Timestamp, Duration, Type, Quantity))
_NUMBERS = frozenset((int, UInt, float))


def equals(left: Value, right: Value) -> bool:
    """Return whether two values are equal in CEL: numbers exactly across types, others within one type."""
    left_class, right_class = left.__class__, right.__class__
    if left_class is right_class and left_class in _PLAIN:
        return bool(left == right)
    if left_class in _NUMBERS or right_class in _NUMBERS:
        # Python compares int with float exactly, also beyond 2**53.
        return left_class in _NUMBERS and right_class in _NUMBERS and bool(left == right)
    kind = kind_of(left)
    if kind != kind_of(right):
        return False
    if kind == "list":
        return len(left) == len(right) and all(map(equals, left, right))
    if kind == "map":
        return len(left) == len(right) and all(
            key in right and equals(value, right[key]) for key, value in left.items()
        )
    if kind == "optional":
        return left.present == right.present and equals(left.value, right.value)
    return bool(left == right)
