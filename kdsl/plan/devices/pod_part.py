"""The part of a pod that device rules read, as a value: pods of which it is equal get equal answers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.devices.pods import DevicePod
from kdsl.plan.devices.reads import attributes_read, keys_read


@dataclass(frozen=True, slots=True)
class PodPart:
    """The names of attributes of `DevicePod`, and the keys of annotations; None for all annotations."""

    attributes: tuple[str, ...]
    annotations: tuple[str, ...] | None

    @staticmethod
    def read_by(exprs: Iterable[TypedExpr]) -> PodPart:
        """Return the part of a pod that expressions read."""
        exprs = tuple(exprs)
        keys = keys_read(exprs, "DevicePod", "annotations")
        return PodPart(tuple(sorted(attributes_read(exprs))), None if keys is None else tuple(sorted(keys)))

    def of(self, pod: DevicePod) -> Hashable:
        """Return the part of one pod."""
        keys = self.annotations
        return tuple(
            [
                tuple([pod.annotations.get(key) for key in keys])
                if name == "annotations" and keys is not None
                else plain(getattr(pod, name))
                for name in self.attributes
            ]
        )


def plain(value: object) -> Hashable:
    """Return a value that can be hashed and is equal for equal maps."""
    if isinstance(value, FrozenMap):
        return value
    if isinstance(value, Mapping):
        return frozenset(value.items())
    assert isinstance(value, Hashable)
    return value
