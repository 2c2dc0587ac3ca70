"""The diagnostic for a key that may be missing from a map, with fixes: a default or a guard."""

from __future__ import annotations

import re

from kdsl.base.diagnostic import Diagnostic, Edit, Fix
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import CallOf, Const, FieldOf, KeyOf, TypedExpr
from kdsl.check.model.types import BOOL, BYTES, DOUBLE, DURATION, INT, QUANTITY, STRING, UINT, Type

_NOUNS = {"labels": "label", "annotations": "annotation"}
_DEFAULTS = {
    STRING: '""',
    INT: "0",
    UINT: "0u",
    DOUBLE: "0.0",
    BOOL: "false",
    BYTES: 'b""',
    QUANTITY: 'quantity("0")',
    DURATION: 'duration("0s")',
}
_CONVERTED = re.compile(r"\b(?:int|uint|double|quantity)\(\Z")
"""The text before a text that is read as a number, where an empty default would always fail."""
_LOOSER_THAN_AND = ("_||_", "_?_:_")


def missing_key(access: TypedExpr, map_: TypedExpr, key: TypedExpr, anchor: TypedExpr | None) -> Diagnostic:
    """Return the error for `access`, which fails without `key` in `map_`; a guard goes before `anchor`."""
    quote = _quote_at(access.span)
    shown = (
        _quoted(key.value, quote) if isinstance(access, KeyOf) and isinstance(key, Const) else key.span.text
    )
    noun, owner = "key", f"`{map_.span.text}`"
    if isinstance(map_, FieldOf) and map_.field in _NOUNS:
        noun, owner = (
            _NOUNS[map_.field],
            f"a {map_.view.removeprefix('Queued').removeprefix('Device').lower()}",
        )
    what = f"{noun} {shown}" if isinstance(key, Const) else f"{noun} `{shown}`"
    fixes = [_default(access, map_, shown, quote), None if anchor is None else _guard(map_, shown, anchor)]
    found = tuple(fix for fix in fixes if fix is not None)
    return Diagnostic(
        CheckCode.MAY_BE_MISSING,
        f"{what} may be missing",
        access.span,
        f"where {owner} does not have it, this is an error",
        help=() if found else (f"filter by `{shown} in {map_.span.text}` first",),
        fixes=found,
    )


def _default(access: TypedExpr, map_: TypedExpr, key: str, quote: str) -> Fix | None:
    default = _default_of(access.type)
    if default is None:
        return None
    if default == '""' and _CONVERTED.search(access.span.source.text, 0, access.span.start):
        default = '"0"'
    default = default.replace('"', quote)
    rest = f"[?{key}].orValue({default})"
    edit = Edit(Span(access.span.source, map_.span.end, access.span.end), rest)
    return Fix(f"give a default: `{map_.span.text}{rest}`", (edit,))


def _default_of(type_: Type) -> str | None:
    if type_.name == "list":
        return "[]"
    return "{}" if type_.name == "map" else _DEFAULTS.get(type_)


def _guard(map_: TypedExpr, key: str, anchor: TypedExpr) -> Fix:
    guard = f"{key} in {map_.span.text} && "
    span = anchor.span
    edits = [Edit(Span(span.source, span.start, span.start), guard)]
    if isinstance(anchor, CallOf) and anchor.function in _LOOSER_THAN_AND:
        edits = [
            Edit(Span(span.source, span.start, span.start), f"{guard}("),
            Edit(Span(span.source, span.end, span.end), ")"),
        ]
    return Fix(f"guard it: `{guard}…`", tuple(edits))


def _quoted(value: object, quote: str) -> str:
    text = str(value).replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{text}{quote}"


def _quote_at(place: Span) -> str:
    """Return the quote for a text there: in a hole `${…}` of a reason, not that of the reason."""
    line = place.source.text[place.source.text.rfind("\n", 0, place.start) + 1 : place.start]
    reason, hole, inside = line.rpartition("${")
    return "'" if hole and '"' in reason and "}" not in inside else '"'
