"""The objects of a document, lists of them unfolded: for the reader of clusters and for the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from kdsl.base.paths import Path
from kdsl.cluster.api.kinds import KINDS, KNOWN_KINDS
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems

_LIST: Final = "List"
Kind: TypeAlias = tuple[str, str]
"""An apiVersion and a kind."""


def objects_in(value: object, problems: Problems) -> Iterator[tuple[dict[str, object], Path, Kind]]:
    """Yield the objects in a document, lists unfolded, each with its path and its (apiVersion, kind)."""
    todo: list[tuple[object, Path, Kind | None]] = [(value, (), None)]
    while todo:
        raw, path, implied = todo.pop()
        place = problems.inside(path)
        if not isinstance(raw, dict):
            place.add(InputCode.NOT_AN_OBJECT, (), "this is not an object: it must be a mapping")
            continue
        kind = _kind(raw, implied, place)
        if kind is None:
            continue
        if not kind[1].endswith(_LIST) or "items" not in raw:
            yield raw, path, kind
            continue
        items = raw["items"]
        if not isinstance(items, list):
            if items is not None:
                place.add(InputCode.WRONG_TYPE, ("items",), "expected a list")
            continue
        # Items of typed lists may have no kind: those of a PodList are Pods.
        inner = (kind[0], kind[1].removesuffix(_LIST)) if kind[1] != _LIST else None
        todo.extend((items[i], (*path, "items", i), inner) for i in reversed(range(len(items))))


def _kind(raw: dict[str, object], implied: Kind | None, problems: Problems) -> Kind | None:
    words: list[str] = []
    for i, name in enumerate(("apiVersion", "kind")):
        word = raw.get(name) or (implied[i] if implied else None)
        if isinstance(word, str):
            words.append(word)
        elif word is None:
            title = f"this is not an object: it has no `{name}`"
            problems.add(InputCode.NOT_AN_OBJECT, (name,), title, *_versions_of(raw.get("kind")))
        else:
            problems.add(InputCode.WRONG_TYPE, (name,), "expected a string")
    return (words[0], words[1]) if len(words) == 2 else None


def _versions_of(kind: object) -> Iterator[str]:
    """Yield a help line with the apiVersion of a kind."""
    for version, name in (*KINDS, *KNOWN_KINDS):
        if name == kind:
            yield f"a {name} has `apiVersion: {version}`"
            return
