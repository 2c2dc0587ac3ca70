"""Server-side apply: each manager owns the fields it applied, and a change of another's field is a conflict.

Owners are kept beside the objects, not in `metadata.managedFields`, and only for applied fields: fields of
other writes have no owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kdsl.sandbox.formats.strategic import merge_key
from kdsl.sandbox.model.errors import ApiError, Causes, Json, invalid, status

Path: TypeAlias = tuple[str, ...]
"""The names on the path to a leaf; an item of a keyed list is `[key=value]`, the value as JSON."""

_IDENTITY = frozenset({"apiVersion", "kind"})


@dataclass(slots=True)
class Owners:
    """The owners of fields, by the uid of the object."""

    by_uid: dict[str, dict[str, frozenset[Path]]] = field(default_factory=dict)

    def forget(self, uid: str) -> None:
        """Remove the owners of a deleted object."""
        self.by_uid.pop(uid, None)


def require_manager(manager: str) -> None:
    """Reject an apply without a field manager."""
    if not manager:
        causes = Causes()
        causes.required("fieldManager", "is required for apply patch")
        raise invalid("meta.k8s.io", "PatchOptions", "", causes)


def merge_applied(
    old: Json, applied: Json, owned: dict[str, frozenset[Path]], manager: str, force: bool
) -> Json:
    """Return the object with an applied configuration; raises 409 where others own a changed field.

    `owned` is updated.
    """
    leaves = dict(_leaves(applied, ()))
    present = dict(_leaves(old, ()))
    taken = [
        (other, path)
        for other, paths in sorted(owned.items())
        if other != manager
        for path in sorted(paths)
        if path in leaves and path in present and present[path] != leaves[path]
    ]
    if taken and not force:
        raise _conflict(taken)
    for other, path in taken:
        owned[other] = owned[other] - {path}
    shared = frozenset(path for other, paths in owned.items() if other != manager for path in paths)
    dropped = owned.get(manager, frozenset()) - leaves.keys() - shared
    found = _merge(old, applied)
    for path in dropped:
        _drop(found, path)
    owned[manager] = frozenset(leaves)
    return found


def _conflict(taken: list[tuple[str, Path]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{other}"',
            "field": _written(path),
        }
        for other, path in taken
    ]
    if len(taken) == 1:
        ((other, path),) = taken
        message = f'Apply failed with 1 conflict: conflict with "{other}": {_written(path)}'
    else:
        # A line for each manager, and one for each of its fields.
        lines: dict[str, list[str]] = {}
        for other, path in taken:
            lines.setdefault(other, [f'conflicts with "{other}":']).append(f"- {_written(path)}")
        said = "\n".join(line for each in lines.values() for line in each)
        message = f"Apply failed with {len(taken)} conflicts: {said}"
    return ApiError(status(409, message, "Conflict", {"causes": causes}), 409)


def _written(path: Path) -> str:
    return "".join(part if part.startswith("[") else f".{part}" for part in path)


def _leaves(value: Json, path: Path) -> Iterator[tuple[Path, Any]]:
    for name, item in value.items():
        if not path and name in _IDENTITY:
            continue
        yield from _leaf(name, item, (*path, name))


def _leaf(name: str, item: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if path in (("metadata", "name"), ("metadata", "namespace")):
        return
    if isinstance(item, dict) and item:
        yield from _leaves(item, path)
    elif isinstance(item, list) and (key := _key(name, item)):
        for one in item:
            yield from _leaves(one, (*path, f"[{key}={json.dumps(one[key])}]"))
    else:
        yield path, item


def _key(name: str, items: list[Any]) -> str | None:
    key = merge_key(name, items)
    whole = key is not None and all(isinstance(item, dict) and key in item for item in items)
    return key if whole else None


def _merge(old: Json, applied: Json) -> Json:
    found = dict(old)
    for name, item in applied.items():
        before = found.get(name)
        if isinstance(item, dict) and isinstance(before, dict):
            found[name] = _merge(before, item)
        elif isinstance(item, list) and isinstance(before, list) and (key := _key(name, item)):
            items = {one.get(key): one for one in before if isinstance(one, dict)}
            for one in item:
                items[one[key]] = _merge(items.get(one[key], {}), one)
            found[name] = list(items.values())
        else:
            found[name] = item
    return found


def _drop(body: Any, path: Path) -> None:
    for part in path[:-1]:
        if part.startswith("[") and isinstance(body, list):
            key, _, value = part[1:-1].partition("=")
            body = next((one for one in body if str(one.get(key)) == value.strip('"')), None)
        else:
            body = body.get(part) if isinstance(body, dict) else None
        if body is None:
            return
    if isinstance(body, dict):
        body.pop(path[-1], None)
