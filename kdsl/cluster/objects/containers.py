"""Containers of a pod in the form that rules read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kdsl.base.resources import NOTHING, Resources, shared
from kdsl.cluster.api import objects
from kdsl.cluster.api.objects import ContainerPort, ResourceList, WrittenQuantity, quantity

MAX_SHARED: Final = 4096
"""The number of cached sets of amounts: the containers of one workload are parsed once."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container. Fields are those of the view of this name; amounts are in canonical units."""

    name: str
    image: str = ""
    restart_policy: str = ""
    privileged: bool = False
    requests: Resources = NOTHING
    limits: Resources = NOTHING
    ports: tuple[ContainerPort, ...] = ()


def read_containers(containers: Iterable[objects.Container]) -> tuple[Container, ...]:
    """Convert the containers of an API object, which must have its defaults."""
    return tuple(
        Container(
            one.name,
            one.image,
            one.restart_policy,
            one.security_context.privileged,
            read_amounts(one.resources.requests),
            read_amounts(one.resources.limits),
            tuple(one.ports),
        )
        for one in containers
    )


def read_amounts(amounts: ResourceList) -> Resources:
    """Return amounts in the canonical units of their resources."""
    if not amounts:
        return NOTHING
    return _read_amounts(tuple(amounts.items()))


@lru_cache(MAX_SHARED)
def _read_amounts(amounts: tuple[tuple[str, WrittenQuantity], ...]) -> Resources:
    return shared(Resources.from_quantities({name: quantity(written) for name, written in amounts}))
