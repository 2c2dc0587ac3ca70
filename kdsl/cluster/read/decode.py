"""Converts plain values to API structs and reports every wrong type. `reader` uses it for each object.

msgspec stops at the first wrong type. So that value is reported and removed from a copy, and the rest is
converted again: one run finds all the wrong types of an object, and a valid object is as fast as with msgspec
alone.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

from kdsl.base.paths import Path
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems

T = TypeVar("T")

MAX_MISFITS: Final = 50

_PLACE: Final = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_STEP: Final = re.compile(r"\.([\w-]+)|\[(\d+)\]|(\[\.\.\.\])")
_EXPECTED: Final = re.compile(r"Expected `([\w |]+)`, got `(\w+)`")
_WORDS: Final = {
    "str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false",
    "int | float | str": "a quantity", "datetime": "a time", "object": "a mapping", "array": "a list",
}  # fmt: skip
_PLACEHOLDERS: Final[dict[str, object]] = {"str": "", "int": 0, "object": {}, "array": [], "bool": False}


def decode(raw: object, into: type[T], problems: Problems) -> T | None:
    """Convert plain JSON values to a struct; None if any has a wrong type, which is added to `problems`.

    Null counts as absent, as it does in Kubernetes.
    """
    read = decode_fitting(raw, into, problems)
    return None if problems.removed else read


def decode_fitting(raw: object, into: type[T], problems: Problems) -> T | None:
    """Convert as `decode` does, but leave values with a wrong type out; None if nothing is left.

    The result is good for finding other mistakes, not for use: then `problems.removed` is not empty.
    """
    try:
        return msgspec.convert(raw, into)
    except msgspec.ValidationError:
        return _decode_again(_without_nulls(raw), into, problems)


def _decode_again(value: object, into: type[T], problems: Problems) -> T | None:
    removed: list[Path] = []
    for _ in range(MAX_MISFITS):
        try:
            decoded = msgspec.convert(value, into)
        except msgspec.ValidationError as error:
            message, steps = _split(error)
            path = _resolve(value, into, steps)
            _report(message, path, problems)
            if not path:
                return None
            _remove(value, path, message)
            removed.append(path)
        else:
            # The values of one item depend on each other.
            problems.removed.update(_item_around(path) or path for path in removed)
            return decoded
    return None


def _item_around(path: Path) -> Path:
    """Return the path of the innermost item of a list that holds a value; () for a value in no list."""
    return path[: max((at for at, step in enumerate(path, 1) if isinstance(step, int)), default=0)]


def _without_nulls(raw: object) -> object:
    """Copy plain values without mapping entries that are null.

    It is not recursive, since the user decides the depth.
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
    """Split msgspec's message into text and path; `...` is the step for a map's key, which it omits."""
    match = _PLACE.fullmatch(str(error))
    if match is None:
        return str(error), ()
    steps: list[str | int] = []
    for name, index, entry in _STEP.findall(match[2]):
        steps.append("..." if entry else int(index) if index else name)
    return match[1], tuple(steps)


def _resolve(value: object, into: type, steps: Path) -> Path:
    """Replace each `...` by the key of its map."""
    found: list[str | int] = []
    for step in steps:
        found.append(_key(value, into, tuple(found), steps) if step == "..." else step)
    return tuple(found)


def _key(value: object, into: type, path: Path, steps: Path) -> str:
    """Return the first key of the map at `path` with whose entry alone the type at `steps` is wrong."""
    parent, at = _at(value, path[:-1]), path[-1]
    entries = _get(parent, at)
    assert isinstance(entries, dict)
    for key, entry in entries.items():
        _put(parent, at, {key: entry})
        try:
            msgspec.convert(value, into)
        except msgspec.ValidationError as error:
            if _split(error)[1] == steps:
                return str(key)
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


def _remove(value: object, path: Path, message: str) -> None:
    parent, at = _at(value, path[:-1]), path[-1]
    if isinstance(at, str):
        assert isinstance(parent, dict)
        del parent[at]
        return
    # A list keeps its length, so that the paths of later findings stay right.
    expected = _EXPECTED.match(message)
    wanted = expected[1].split(" | ")[0] if expected else ""
    _put(parent, at, _PLACEHOLDERS.get(wanted))


def _report(message: str, path: Path, problems: Problems) -> None:
    expected = _EXPECTED.match(message)
    if expected is None:
        # The only other message is about the text of a time: msgspec mentions RFC3339 there.
        problems.add(InputCode.VALUE, path, message[:1].lower() + message[1:])
        return
    wanted, got = expected[1].removesuffix(" | null"), expected[2]
    help = ("put it in quotes",) if wanted == "str" and got in ("int", "float", "bool") else ()
    title = f"expected {_WORDS.get(wanted, wanted)}, got {_WORDS.get(got, got)}"
    problems.add(InputCode.WRONG_TYPE, path, title, *help)
