"""`matchLabelKeys` and `mismatchLabelKeys`: the server writes them into the selectors of a new pod.

A key stands for the pod's own value of that label, so that a term selects pods of one revision, or of others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from kdsl.sandbox.model.errors import Causes, Json
from kdsl.sandbox.rules.metadata_rules import check_key

_SAME: Final = "matchLabelKeys"
_OTHER: Final = "mismatchLabelKeys"
_OPERATORS: Final = {_SAME: "In", _OTHER: "NotIn"}


def merge_label_keys(pod: Json) -> None:
    """Add a condition to the selectors of a new pod for each key whose label the pod has, in place."""
    labels = pod["metadata"].get("labels", {})
    for owner in _owners(pod["spec"]):
        selector = owner.get("labelSelector")
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for name, operator in _OPERATORS.items()
            for key in owner.get(name, ())
            if key in labels
        ]
        if selector is not None and added:
            owner["labelSelector"] = {
                **selector,
                "matchExpressions": [*selector.get("matchExpressions", ()), *added],
            }


def check_label_keys(owner: Json, path: str, causes: Causes) -> None:
    """Add the errors in the keys of a term or a constraint to `causes`; its selector has their conditions."""
    selector = owner.get("labelSelector")
    for name in _OPERATORS:
        keys = owner.get(name, [])
        if keys and selector is None:
            causes.forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            check_key(key, f"{path}.{name}[{index}]", causes)
    same, other = owner.get(_SAME, []), owner.get(_OTHER, [])
    for key in _selected_twice(selector or {}, same):
        # The path of the reference leaves out the name of the list.
        causes.invalid(
            f"{path}[{same.index(key)}]", json.dumps(key), f"exists in both {_SAME} and labelSelector"
        )
    for index, key in enumerate(same):
        if key in other:
            causes.invalid(
                f"{path}.{_SAME}[{index}]", json.dumps(key), f"exists in both {_SAME} and {_OTHER}"
            )


def _selected_twice(selector: Json, keys: list[str]) -> Iterator[str]:
    known = set(selector.get("matchLabels", {}))
    for item in selector.get("matchExpressions", ()):
        key = item.get("key", "")
        if key in keys and key in known:
            yield key
        known.add(key)


def _owners(spec: Json) -> Iterator[Json]:
    yield from spec.get("topologySpreadConstraints", ())
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = spec.get("affinity", {}).get(kind, {})
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            if "podAffinityTerm" in weighted:
                yield weighted["podAffinityTerm"]
