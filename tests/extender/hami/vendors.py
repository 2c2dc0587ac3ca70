"""Device plugins that are played: they register cards, answer handshakes and serve the pods they are told of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kdsl.cluster.devices.codec import decode

from tests.extender.hami.world import Cluster, Json

CHOSEN_NODE, PHASE = "hami.io/vgpu-node", "hami.io/bind-phase"


@dataclass(frozen=True)
class Vendor:
    """A vendor: its annotations, a node's cards, and what containers ask for.

    `large` is so much that a card has no room for it beside what a pod has that asks for `limits`.
    """

    profile: str
    register: str
    handshake: str
    record: str
    to_allocate: str
    lock: str
    resource: str
    limits: dict[str, str]
    large: dict[str, str]
    cards: tuple[Json, ...]
    is_csv: bool = False
    mig: str = ""
    env: tuple[str, ...] = field(default=())

    @property
    def scheduler(self) -> str:
        return f"life-{'mig' if self.mig else self.profile}"

    def registered(self, node: str) -> str:
        """Return what the plugin of a node writes of its cards."""
        rows = [{**card, "id": f"{node}-{card['id']}"} for card in self.cards]
        if not self.is_csv:
            return json.dumps(rows)
        keys = ("id", "count", "devmem", "devcore", "type", "numa", "health")
        return "".join(",".join(str(row[key]) for key in keys) + ":" for row in rows)

    def pod(self, name: str, *limits: dict[str, str]) -> Json:
        """Return a pod with a container for each of some limits, or with one for the usual ones."""
        containers = [
            {"name": f"c{number}", "image": "img:1", "resources": {"limits": asked}}
            for number, asked in enumerate(limits or (self.limits,))
        ]
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": containers},
        }  # fmt: skip


def _card(id_: str, **fields: Any) -> Json:
    usual = {"count": 4, "devmem": 8192, "devcore": 100, "type": "NVIDIA", "numa": 0, "health": True}
    return {"id": id_, **usual, **fields}


_PARTS = [
    {"name": "1g.10gb", "memoryMB": 10240, "core": 15, "sliceCount": 1,
     "placements": [{"start": at, "size": 1} for at in range(4)]},
    {"name": "2g.20gb", "memoryMB": 20480, "core": 30, "sliceCount": 2,
     "placements": [{"start": at, "size": 2} for at in (0, 2)]},
]  # fmt: skip
_NVIDIA = {
    "register": "hami.io/node-nvidia-register",
    "handshake": "hami.io/node-handshake",
    "record": "hami.io/vgpu-devices-allocated",
    "to_allocate": "hami.io/vgpu-devices-to-allocate",
    "lock": "hami.io/mutex.lock",
    "resource": "nvidia.com/gpu",
}
NVIDIA = Vendor(
    profile="nvidia", **_NVIDIA,
    limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "5000"},
    large={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"},
    cards=(_card("g0"),),
)  # fmt: skip
MIG = Vendor(
    profile="shared_instances", **_NVIDIA, mig="hami.io/vgpu-mig-allocations",
    limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "15000"},
    large={"nvidia.com/gpu": "2", "nvidia.com/gpumem": "15000"},
    cards=(_card("m0", devmem=40960, mode="mig", migProfiles=_PARTS, type="NVIDIA-A100"),),
)  # fmt: skip
ASCEND = Vendor(
    profile="ascend",
    register="hami.io/node-register-Ascend910B3",
    handshake="hami.io/node-handshake-Ascend910B3",
    record="hami.io/Ascend910B3-devices-allocated",
    to_allocate="hami.io/Ascend910B3-devices-to-allocate",
    lock="hami.io/mutex.lock",
    resource="huawei.com/Ascend910B3",
    limits={"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "30000"},
    large={"huawei.com/Ascend910B3": "1"},
    cards=(_card("a0", devmem=65536, devcore=20, type="Ascend910B3"),),
)
ACME = Vendor(
    profile="acme",
    register="acme.example/cards",
    handshake="acme.example/handshake",
    record="acme.example/cards-allocated",
    to_allocate="acme.example/cards-to-allocate",
    lock="acme.example/lock",
    resource="acme.example/card",
    limits={"acme.example/card": "1", "acme.example/gibibytes": "5"},
    large={"acme.example/card": "1", "acme.example/gibibytes": "8"},
    cards=(_card("x0", type="ACME-1"),),
    is_csv=True,
    env=("ACME_SHARED",),
)
VENDORS = {"nvidia": NVIDIA, "mig": MIG, "ascend": ASCEND, "acme": ACME}


class Plugin:
    """The device plugin of one node."""

    def __init__(self, cluster: Cluster, vendor: Vendor, node: str) -> None:
        self._cluster, self._vendor, self._node = cluster, vendor, node

    async def register(self) -> None:
        """Write the node's cards, and that the plugin lives."""
        vendor = self._vendor
        await self._cluster.annotate_node(
            self._node,
            {
                vendor.register: vendor.registered(self._node),
                vendor.handshake: "Reported_2026-01-01 00:00:00",
            },
        )

    async def allocate(self) -> bool:
        """Serve one container of the pod that the node's lock names; False where there is none to serve.

        With the last one the bind phase ends, and the lock is given back.
        """
        cluster, vendor = self._cluster, self._vendor
        held = (await cluster.annotations(self._node)).get(vendor.lock, "")
        _, _, name = [*held.split(","), "", ""][:3]
        pod = await cluster.pod(name) if name else None
        if pod is None or pod["spec"].get("nodeName") != self._node:
            return False
        annotations = pod["metadata"]["annotations"]
        assert annotations[CHOSEN_NODE] == self._node
        assert annotations[PHASE] == "allocating"
        entries = annotations[vendor.to_allocate].split(";")[:-1]
        served = next(number for number, entry in enumerate(entries) if entry)
        entries[served] = ""
        rest = "".join(f"{entry};" for entry in entries)
        await cluster.annotate(name, {vendor.to_allocate: rest})
        if not any(entries):
            await cluster.annotate(name, {PHASE: "success"})
            await cluster.annotate_node(self._node, {vendor.lock: None})
        return True


async def check_cards(cluster: Cluster, vendor: Vendor, *, bound_only: bool = False) -> dict[str, int]:
    """Check that no card is promised to more than it has; return the memory that is taken, by card.

    `bound_only`: where requests are lost, a pod that is not bound may say that it has what it has no more.
    """
    cards = {
        f"{node['metadata']['name']}-{card['id']}": card
        for node in (await cluster.get("/api/v1/nodes"))["items"]
        for card in vendor.cards
    }
    taken: dict[str, int] = {}
    places: dict[str, set[int]] = {}
    for pod in (await cluster.get("/api/v1/pods"))["items"]:
        annotations = pod["metadata"].get("annotations") or {}
        if pod["status"].get("phase") in ("Succeeded", "Failed") or CHOSEN_NODE not in annotations:
            continue
        if bound_only and not pod["spec"].get("nodeName"):
            continue
        where = pod["spec"].get("nodeName") or annotations[CHOSEN_NODE]
        assert where == annotations[CHOSEN_NODE]
        for grant in (each for grants in decode(annotations[vendor.record]) for each in grants):
            assert grant.id.startswith(f"{where}-"), f"{pod['metadata']['name']} has {grant.id} on {where}"
            taken[grant.id] = taken.get(grant.id, 0) + grant.memory
        for card, place in _places(annotations, vendor):
            assert place not in places.setdefault(card, set()), f"{card} is given away twice at {place}"
            places[card].add(place)
    for name, memory in taken.items():
        assert memory <= cards[name]["devmem"], f"{name} has {memory} taken"
    return taken


def _places(annotations: Json, vendor: Vendor) -> Iterator[tuple[str, int]]:
    """Yield the slices of cards that a pod's instances take."""
    for each in json.loads(annotations.get(vendor.mig, "[]")) if vendor.mig else ():
        place = each["placement"]
        yield from ((each["gpuUUID"], at) for at in range(place["start"], place["start"] + place["size"]))
