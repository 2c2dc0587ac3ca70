"""Plain values to API structs, with everything that does not fit reported. `reader` uses it for each object.

msgspec stops at the first misfit. So a misfit is reported, cut out of a copy of the value, and the rest is
tried again: all the wrong types of an object are found at once, and the good case stays as fast as msgspec
is.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

from kdsl.base.paths import Path
from kdsl.cluster.read.problems import InputCode, Problems

T = TypeVar("T")

MAX_MISFITS: Final = 50

_PLACE: Final = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]|(\[\.\.\.\])")
_EXPECTED: Final = re.compile(r"Expected `([\w |]+)`, got `(\w+)`")
_WORDS: Final = {
    "str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false",
    "int | float | str": "a quantity", "datetime": "a time", "object": "a mapping", "array": "a list",
}  # fmt: skip
_PLACEHOLDERS: Final[dict[str, object]] = {"str": "", "int": 0, "object": {}, "array": [], "bool": False}


def decode(raw: object, into: type[T], problems: Problems) -> T | None:
    """Convert plain JSON values to a struct; None where something did not fit, which `problems` then says.

    Null counts as absent, as it does in Kubernetes.
    """
    try:
        return msgspec.convert(raw, into)
    except msgspec.ValidationError:
        return _decode_again(_without_nulls(raw), into, problems)


def _decode_again(value: object, into: type[T], problems: Problems) -> T | None:
    is_clean = True
    for _ in range(MAX_MISFITS):
        try:
            decoded = msgspec.convert(value, into)
        except msgspec.ValidationError as error:
            is_clean = False
            message, steps = _split(error)
            path = _resolve(value, into, steps)
            _report(message, path, problems)
            if not path:
                return None
            _cut_out(value, path, message)
        else:
            return decoded if is_clean else None
    return None


def _without_nulls(raw: object) -> object:
    """Copy plain values, leaving out mapping entries that are null.

    Not recursive: depth is the user's choice.
    """
    root: list[object] = [raw]
    todo: list[tuple[list[object] | dict[str, object], str | int, object]] = [(root, 0, raw)]
    while todo:
        parent, at, value = todo.pop()
        copy: list[object] | dict[str, object]
        if isinstance(value, dict):
            copy = {key: item for key, item in value.items() if item is not None}
            todo.extend((copy, key, item) for key, item in copy.items() if isinstance(item, dict | list))
        elif isinstance(value, list):
            copy = list(value)
            todo.extend((copy, i, item) for i, item in enumerate(copy) if isinstance(item, dict | list))
        else:
            continue
        _put(parent, at, copy)
    return root[0]


def _split(error: msgspec.ValidationError) -> tuple[str, Path]:
    """Take msgspec's text apart; the key of a map, which it does not name, becomes the step `...`."""
    match = _PLACE.fullmatch(str(error))
    if match is None:
        return str(error), ()
    steps: list[str | int] = []
    for name, index, entry in _STEP.findall(match[2]):
        steps.append("..." if entry else int(index) if index else name)
    return match[1], tuple(steps)


def _resolve(value: object, into: type, steps: Path) -> Path:
    """Replace a final `...` by the first key of the map there whose entry alone still does not fit."""
    if not steps or steps[-1] != "...":
        return steps
    parent, at = _at(value, steps[:-2]), steps[-2]
    entries = _get(parent, at)
    assert isinstance(entries, dict)
    for key, entry in entries.items():
        _put(parent, at, {key: entry})
        try:
            msgspec.convert(value, into)
        except msgspec.ValidationError as error:
            if _split(error)[1] == steps:
                return (*steps[:-1], key)
        finally:
            _put(parent, at, entries)
    raise AssertionError("msgspec rejected a map of which it accepts every entry")


def _at(value: object, path: Path) -> object:
    for step in path:
        value = _get(value, step)
    return value


def _get(parent: object, at: str | int) -> object:
    # INVARIANT: msgspec walked the same value: names lead into mappings, indexes into lists.
    if isinstance(at, str):
        assert isinstance(parent, dict)
        return parent[at]
    assert isinstance(parent, list)
    return parent[at]


def _put(parent: object, at: str | int, value: object) -> None:
    if isinstance(at, str):
        assert isinstance(parent, dict)
        parent[at] = value
    else:
        assert isinstance(parent, list)
        parent[at] = value


def _cut_out(value: object, path: Path, message: str) -> None:
    parent, at = _at(value, path[:-1]), path[-1]
    if isinstance(at, str):
        assert isinstance(parent, dict)
        del parent[at]
        return
    # A list keeps its length, so that the places of later findings stay right.
    expected = _EXPECTED.match(message)
    wanted = expected[1].split(" | ")[0] if expected else ""
    _put(parent, at, _PLACEHOLDERS.get(wanted))


def _report(message: str, path: Path, problems: Problems) -> None:
    expected = _EXPECTED.match(message)
    if expected is None:
        # What is left is the text of a time: msgspec speaks of RFC3339 there.
        problems.add(InputCode.VALUE, path, message[:1].lower() + message[1:])
        return
    wanted, got = expected[1].removesuffix(" | null"), expected[2]
    help = ("put it in quotes",) if wanted == "str" and got in ("int", "float", "bool") else ()
    title = f"expected {_WORDS.get(wanted, wanted)}, got {_WORDS.get(got, got)}"
    problems.add(InputCode.WRONG_TYPE, path, title, *help)
