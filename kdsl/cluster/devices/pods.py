"""Pods and nodes as device rules see them.

They are values: a change makes another pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from kdsl.base.frozen_map import FrozenMap
from kdsl.base.quantity import Quantity
from kdsl.base.resources import NOTHING, Resources
from kdsl.cluster.api.objects import Container, Node, Pod, PodSpec, ResourceList, quantity

_ALWAYS: Final = "Always"
NO_AMOUNTS: Final[FrozenMap[str, Quantity]] = FrozenMap()


class Phase(StrEnum):
    """The phase in which a container runs: before the others, beside all that follow, or with the others."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


@dataclass(frozen=True, slots=True)
class DeviceContainer:
    """A container. Fields are those of the view of this name; `env` holds the variables that admission added,
    in order.
    """

    name: str
    phase: Phase = Phase.APP
    limits: Mapping[str, Quantity] = NO_AMOUNTS
    requests: Mapping[str, Quantity] = NO_AMOUNTS
    env: tuple[tuple[str, str], ...] = ()
    is_privileged: bool = False
    # Every kind of a profile reads the amounts.
    _limit_amounts: Mapping[str, int] | None = field(default=None, init=False, compare=False, repr=False)
    _amounts: Mapping[str, int] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def is_init(self) -> bool:
        return self.phase is not Phase.APP

    def extended(self) -> DeviceContainer:
        """Return the container with its extended resources only."""
        limits, requests = (
            FrozenMap({name: amount for name, amount in amounts.items() if "/" in name})
            for amounts in (self.limits, self.requests)
        )
        return replace(self, limits=limits, requests=requests)

    @property
    def limit_amounts(self) -> Mapping[str, int]:
        """The amounts in limits that are whole numbers."""
        if self._limit_amounts is None:
            object.__setattr__(self, "_limit_amounts", _whole(self.limits))
        assert self._limit_amounts is not None
        return self._limit_amounts

    @property
    def amounts(self) -> Mapping[str, int]:
        """The amounts that are whole numbers: of each resource in limits, else in requests."""
        if self._amounts is None:
            object.__setattr__(self, "_amounts", _whole({**self.requests, **self.limits}))
        assert self._amounts is not None
        return self._amounts


@dataclass(frozen=True, slots=True)
class DevicePod:
    """A pod. Fields are those of the view of this name; init containers come first among `containers`."""

    name: str
    namespace: str = "default"
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    runtime_class: str = ""
    containers: tuple[DeviceContainer, ...] = ()
    requests: Resources = NOTHING

    @staticmethod
    def of(pod: Pod) -> DevicePod:
        """Read an API object."""
        meta, spec = pod.metadata, pod.spec
        return DevicePod(
            meta.name, meta.namespace, meta.uid, meta.labels, meta.annotations, "", containers_of(spec)
        )

    @property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(each.phase for each in self.containers)

    def with_annotations(self, annotations: Mapping[str, str]) -> DevicePod:
        """Return the pod with these annotations as well."""
        return replace(self, annotations={**self.annotations, **annotations})

    def with_container(self, at: int, container: DeviceContainer) -> DevicePod:
        """Return the pod with another container in place of number `at`."""
        return replace(self, containers=(*self.containers[:at], container, *self.containers[at + 1 :]))


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A node. Fields are those of the view of this name."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    allocatable: Resources = NOTHING
    requested: Resources = NOTHING

    @staticmethod
    def of(node: Node) -> DeviceNode:
        """Read an API object."""
        meta = node.metadata
        return DeviceNode(meta.name, meta.labels, meta.annotations, whole_amounts(node.status.capacity))


def containers_of(spec: PodSpec) -> tuple[DeviceContainer, ...]:
    """Return the containers of a pod, init containers first."""
    return (
        *(
            _container(each, Phase.SIDECAR if each.restart_policy == _ALWAYS else Phase.INIT)
            for each in spec.init_containers
        ),
        *(_container(each, Phase.APP) for each in spec.containers),
    )


def whole_amounts(amounts: ResourceList) -> dict[str, int]:
    """Return the amounts that are whole numbers."""
    return _whole(_quantities(amounts))


def _container(container: Container, phase: Phase) -> DeviceContainer:
    resources = container.resources
    return DeviceContainer(
        container.name,
        phase,
        FrozenMap(_quantities(resources.limits)),
        FrozenMap(_quantities(resources.requests)),
        is_privileged=container.security_context.privileged,
    )


def _quantities(amounts: ResourceList) -> dict[str, Quantity]:
    return {name: quantity(written) for name, written in amounts.items()}


def _whole(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: amount.as_integer() for name, amount in amounts.items() if amount.is_integer}
