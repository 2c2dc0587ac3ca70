"""`"…".format([…])` of CEL's string extension: %s %d %f %e %b %o %x %X, and %% for a percent sign."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from kdsl.check.library import TYPE_NAMES
from kdsl.check.model.types import Type
from kdsl.eval.functions.conversions import string_to_bytes, text_of
from kdsl.eval.values import MAX_TEXT, EvalError, Value, from_key, kind_of

MAX_PRECISION = 1000
"""The most digits after the point in a clause."""

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]+))?([a-zA-Z]))")
_DEFAULT_PRECISION = 6
QUALIFIED_NAMES: Mapping[Type, str] = {type_: name for name, type_ in TYPE_NAMES.items()}
"""The names of types that expressions can name."""


def format_text(template: str, args: Value) -> str:
    """Return the template with its clauses replaced, from left to right, by the arguments."""
    pieces: list[str] = []
    size = 0
    for piece in _pieces(template, args):
        size += len(piece)
        if size > MAX_TEXT:
            raise EvalError(f"a text would be longer than {MAX_TEXT} characters")
        pieces.append(piece)
    return "".join(pieces)


def _pieces(template: str, args: Value) -> Iterator[str]:
    at, used = 0, 0
    while (start := template.find("%", at)) >= 0:
        yield template[at:start]
        clause = _CLAUSE.match(template, start)
        if clause is None:
            raise EvalError(f"could not parse the formatting clause `{template[start : start + 10]}`")
        at = clause.end()
        if clause[1]:
            yield "%"
            continue
        if used >= len(args):
            raise EvalError(f"index {used} out of range: there are too few arguments to format")
        yield from _formatted(clause[3], clause[2], args[used])
        used += 1
    yield template[at:]


def _formatted(verb: str, precision: str | None, value: Value) -> Iterator[str]:
    digits = _DEFAULT_PRECISION
    if precision is not None:
        digits = int(precision) if len(precision) <= 4 else MAX_PRECISION + 1
    if digits > MAX_PRECISION:
        raise EvalError(f"a precision of more than {MAX_PRECISION} digits")
    if verb == "s":
        yield from _text(value)
    elif verb in ("f", "e"):
        yield _point(verb, digits, value)
    elif verb in _VERBS:
        yield _VERBS[verb](value)
    else:
        raise EvalError(f"could not parse formatting clause: unrecognized formatting clause `{verb}`")


def _text(value: Value) -> Iterator[str]:
    """Yield the text of a value for `%s`, in pieces: lists and maps may hold one long text many times."""
    match kind_of(value):
        case "null_type":
            yield "null"
        case "double":
            yield _plain(value)
        case "type":
            yield QUALIFIED_NAMES.get(value, str(value))
        case "list":
            yield "["
            for at, item in enumerate(value):
                yield ", " if at else ""
                yield from _text(item)
            yield "]"
        case "map":
            yield "{"
            for at, (name, key) in enumerate(_sorted(value)):
                yield f"{', ' if at else ''}{name}: "
                yield from _text(value[key])
            yield "}"
        case _:
            yield text_of(value)


def _sorted(entries: Mapping[Value, Value]) -> list[tuple[str, Value]]:
    """Return the keys of a map sorted by their texts; keys of different types may have the same."""
    return sorted(((text_of(from_key(key)), key) for key in entries), key=lambda entry: entry[0])


def _not_finite(value: float) -> str | None:
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: float) -> str:
    """Return the shortest decimal text that reads back as `value`, without an exponent."""
    special = _not_finite(value)
    if special is not None:
        return special
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _point(verb: str, digits: int, value: Value) -> str:
    if kind_of(value) not in ("int", "uint", "double"):
        raise EvalError(f"%{verb} needs a number, was given {kind_of(value)}")
    return _not_finite(float(value)) or format(float(value), f".{digits}{verb}")


def _decimal(value: Value) -> str:
    match kind_of(value):
        case "int" | "uint":
            return str(int(value))
        case "double":
            return _plain(value)
    raise EvalError(f"%d needs a number, was given {kind_of(value)}")


def _integer(verb: str, kinds: tuple[str, ...]) -> Callable[[Value], str]:
    def text(value: Value) -> str:
        if kind_of(value) not in kinds:
            raise EvalError(f"%{verb} needs an integer, was given {kind_of(value)}")
        return format(int(value), verb)

    return text


def _hex(value: Value) -> str:
    match kind_of(value):
        case "int" | "uint":
            return format(int(value), "x")
        case "string":
            return string_to_bytes(value).hex()
        case "bytes":
            digits: str = value.hex()
            return digits
    raise EvalError(f"%x needs an integer, a string or bytes, was given {kind_of(value)}")


_VERBS: Mapping[str, Callable[[Value], str]] = {
    "d": _decimal,
    "b": _integer("b", ("bool", "int", "uint")),
    "o": _integer("o", ("int", "uint")),
    "x": _hex,
    "X": lambda value: _hex(value).upper(),
}
