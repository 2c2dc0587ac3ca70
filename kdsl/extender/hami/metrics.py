"""HAMi's metrics of cards, their use, and quotas, under HAMi's names, which its dashboards use.

The scheduling thread only collects references; another thread computes the numbers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kdsl import __version__
from kdsl.cluster.devices.cards import Card
from kdsl.cluster.devices.quota import QuotaNames
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.obs.gauges import Gauge
from kdsl.plan.devices.plugin import DevicesPlugin

_ZONE: Final = "vGPU"
_MIB: Final = 1 << 20
_BASE: Final = ("node", "device_uuid", "device_index", "device_type")
_PERCENT_KINDS: Final = frozenset({"AMD"})
"""Kinds whose compute is counted in units of the card, but reported in percent."""
_MIG_RECORD: Final = "hami.io/vgpu-mig-allocations"
_MIG_IDS: Final = ("migUUID", "gpuInstanceID", "computeInstanceID")

ABOUT: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "hami_gpu_memory_limit_bytes": ("Memory of a card.", _BASE),
    "hami_gpu_core_limit_ratio": ("Compute of a card.", _BASE),
    "hami_gpu_memory_allocated_bytes": ("Memory of a card that pods have.", (*_BASE, "device_cores")),
    "hami_gpu_shared_count": ("Containers that share a card.", _BASE),
    "hami_gpu_core_allocated_ratio": ("Compute of a card that pods have.", _BASE),
    "hami_node_gpu_overview": (
        "Memory of a card that pods have, with the card's attributes.",
        ("node", "device_uuid", "device_index", "device_cores", "device_memory_limit", "device_type"),
    ),
    "hami_node_gpu_memory_allocated_ratio": ("Part of a card's memory that pods have, 0 to 1.", _BASE),
    "hami_node_gpu_mig_instance_info": (
        "1 for each instance of a card in MIG mode that a device plugin has made.",
        ("node", "device_uuid", "device_index", "mig_uuid", "profile", "gpu_instance_id",
         "compute_instance_id", "placement_start", "placement_size"),
    ),
    "hami_vgpu_memory_allocated_bytes": (
        "Memory of a card that a pod has.", ("namespace", "node", "pod", "container_index", "device_uuid"),
    ),
    "hami_vgpu_core_allocated_ratio": (
        "Compute of a card that a pod has.", ("namespace", "node", "pod", "container_index", "device_uuid"),
    ),
    "hami_resource_quota_used": ("Use of a resource in a namespace.", ("namespace", "quota_name", "limit")),
    "hami_resource_quota_limit": ("Limit of a resource in a namespace.", ("namespace", "quota_name")),
}  # fmt: skip
"""The help text and the labels of each family; each has the label `zone`, too."""
_OLD_BASE: Final = ("nodeid", "deviceuuid", "deviceidx", "devicetype")
_OLD_POD: Final = ("podnamespace", "nodename", "podname", "containeridx", "deviceuuid")
LEGACY: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "hami_gpu_memory_limit_bytes": ("GPUDeviceMemoryLimit", _OLD_BASE),
    "hami_gpu_core_limit_ratio": ("GPUDeviceCoreLimit", _OLD_BASE),
    "hami_gpu_memory_allocated_bytes": ("GPUDeviceMemoryAllocated", (*_OLD_BASE, "devicecores")),
    "hami_gpu_shared_count": ("GPUDeviceSharedNum", _OLD_BASE),
    "hami_gpu_core_allocated_ratio": ("GPUDeviceCoreAllocated", _OLD_BASE),
    "hami_node_gpu_overview": (
        "nodeGPUOverview",
        ("nodeid", "deviceuuid", "deviceidx", "devicecores", "devicememorylimit", "devicetype"),
    ),
    "hami_node_gpu_memory_allocated_ratio": ("nodeGPUMemoryPercentage", _OLD_BASE),
    "hami_vgpu_memory_allocated_bytes": ("vGPUMemoryAllocated", _OLD_POD),
    "hami_vgpu_core_allocated_ratio": ("vGPUCoreAllocated", _OLD_POD),
    "hami_resource_quota_used": ("QuotaUsed", ("quotanamespace", "quotaName", "limit")),
}
"""The old names of families and of their labels, in the order of the new ones."""
BUILD_INFO: Final = "hami_build_info"
_BUILD: Final = ("version", "revision", "build_date", "go_version", "compiler", "platform")


@dataclass(frozen=True, slots=True)
class MetricsInput:
    """The input of a scrape: the cards by node, the limits by namespace, the resources by kind."""

    nodes: tuple[tuple[str, tuple[Card, ...]], ...]
    limits: Mapping[str, Mapping[str, int]]
    names: Mapping[str, QuotaNames]

    @staticmethod
    def of(devices: DevicesPlugin, snapshot: Snapshot) -> MetricsInput:
        """Collect the input, on the scheduling thread."""
        inventories, catalog = devices.inventories, snapshot.catalog
        infos = (snapshot.info(row) for row in snapshot.order.tolist())
        return MetricsInput(
            tuple((info.name, inventories.cards(info)) for info in infos),
            {name: catalog.quota_limits(name) for name in catalog.limited_namespaces},
            {kind: program.quota_names for kind, program in inventories.programs.items()},
        )


class CardMetrics:
    """Computes the numbers of one scrape."""

    def __init__(self, data: MetricsInput, *, has_legacy: bool = False) -> None:
        self._data, self._has_legacy = data, has_legacy
        self._found: dict[str, Gauge] = {}

    def families(self) -> list[Gauge]:
        """Return all families, including those without numbers."""
        self._found = {name: Gauge(name, about, (*labels, "zone")) for name, (about, labels) in ABOUT.items()}
        for node, cards in self._data.nodes:
            for card in cards:
                self._card(node, card)
        self._quotas()
        build = Gauge(BUILD_INFO, "1, with the version that runs.", _BUILD)
        build.values.append(((__version__, "", "", "", "", ""), 1))
        legacy = [_renamed(self._found[name], *LEGACY[name]) for name in LEGACY] if self._has_legacy else []
        return [*self._found.values(), *legacy, build]

    def _card(self, node: str, card: Card) -> None:
        base = (node, card.id, str(card.index), card.type)
        cores, taken = _compute(card)
        self._add("hami_gpu_memory_limit_bytes", base, card.memory * _MIB)
        self._add("hami_gpu_core_limit_ratio", base, cores)
        self._add("hami_gpu_memory_allocated_bytes", (*base, str(cores)), card.used_memory * _MIB)
        self._add("hami_gpu_shared_count", base, card.used)
        self._add("hami_gpu_core_allocated_ratio", base, taken)
        overview = (node, card.id, str(card.index), str(cores), str(card.memory), card.type)
        self._add("hami_node_gpu_overview", overview, card.used_memory * _MIB)
        if card.memory:
            self._add("hami_node_gpu_memory_allocated_ratio", base, card.used_memory / card.memory)
        for tenant in card.tenants:
            # HAMi counts whole pods, under container index 0.
            of_pod = (tenant.namespace, node, tenant.name, "0", card.id)
            self._add("hami_vgpu_memory_allocated_bytes", of_pod, tenant.memory * _MIB)
            self._add("hami_vgpu_core_allocated_ratio", of_pod, tenant.cores)
            for instance in _instances(tenant.annotations, card.id):
                self._add("hami_node_gpu_mig_instance_info", (*base[:3], *instance), 1)

    def _quotas(self) -> None:
        data = self._data
        used: dict[tuple[str, str], int] = defaultdict(int)
        for card in (card for _, cards in data.nodes for card in cards):
            names = data.names[card.kind]
            for tenant in card.tenants:
                used[tenant.namespace, names.memory] += tenant.memory
                used[tenant.namespace, names.cores] += tenant.cores
        resources = {name for names in data.names.values() for name in (names.memory, names.cores)}
        for namespace, limits in data.limits.items():
            for resource in sorted(resources & limits.keys()):
                limit, amount = limits[resource], used[namespace, resource]
                self._add("hami_resource_quota_limit", (namespace, resource), limit)
                self._add("hami_resource_quota_used", (namespace, resource, str(limit)), amount)

    def _add(self, name: str, labels: Iterable[str], value: float) -> None:
        self._found[name].values.append(((*labels, _ZONE), value))


def _renamed(gauge: Gauge, name: str, labels: tuple[str, ...]) -> Gauge:
    """Return a family under its old name."""
    return Gauge(name, gauge.about, (*labels, "zone"), gauge.values)


def _compute(card: Card) -> tuple[int, int]:
    """Return the compute of a card, and its used part."""
    if card.kind not in _PERCENT_KINDS or not card.cores:
        return card.cores, card.used_cores
    return 100, -(-card.used_cores * 100 // card.cores)


def _instances(annotations: Mapping[str, str], card: str) -> Iterator[tuple[str, ...]]:
    """Yield the labels of the card's MIG instances that a device plugin has made for a pod."""
    try:
        written = json.loads(annotations.get(_MIG_RECORD, "[]"))
    except (ValueError, RecursionError):
        return
    for each in written if isinstance(written, list) else ():
        if isinstance(each, dict) and each.get("gpuUUID") == card and all(key in each for key in _MIG_IDS):
            yield _labels(each)


def _labels(instance: dict[str, Any]) -> tuple[str, ...]:
    placement = instance.get("placement")
    place = placement if isinstance(placement, dict) else {}
    mig, gpu, compute = (str(instance[key]) for key in _MIG_IDS)
    return (
        mig,
        str(instance.get("profile", "")),
        gpu,
        compute,
        str(place.get("start", "")),
        str(place.get("size", "")),
    )
