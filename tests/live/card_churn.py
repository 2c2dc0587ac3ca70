"""Random churn on nodes with cards: no card is promised more than it has, whatever happens.

Each node has one card with four places and 1,000 MB. A device plugin is played: it serves the pod that the
node's lock names once that is bound, and takes the lock away.
"""

from __future__ import annotations

from typing import Any

from tests.live.churn import Churn
from tests.live.cluster_api import Json
from tests.live.live_world import World
from tests.live.test_devices import LOCK, gpu_node, gpu_pod, gpu_profile

MEMORY, PLACES = 1000, 4
ALLOCATED = "hami.io/vgpu-devices-allocated"
PHASE = "hami.io/bind-phase"


class CardChurn(Churn):
    """One run of pods that ask for a part of a card."""

    def _node(self, name: str) -> Json:
        return gpu_node(name)

    def _pod(self, name: str, cpu: int = 1, **fields: Any) -> Json:
        made = gpu_pod(name, self.random.choice((200, 400, 400, 700)))
        made["spec"].update(fields)
        return made

    def _world(self) -> World:
        return World(self.api, gpu_profile)

    async def _bind_by_hand(self) -> None:
        """Nobody binds such pods without the annotations that say which card they have."""

    def _serve(self) -> None:
        """Serve the pods whose turn it is, as a device plugin does."""
        for name, node in self.api.objects["nodes"].items():
            annotations = node["metadata"].get("annotations", {})
            _, namespace, pod = (annotations.get(LOCK, "") + ",,").split(",")[:3]
            key = f"{namespace}/{pod}"
            thing = self.api.objects["pods"].get(key)
            if thing is None or thing["spec"].get("nodeName") != name:
                continue
            if thing["metadata"].get("annotations", {}).get(PHASE) == "allocating":
                self.api.change(
                    "pods", key, lambda one: one["metadata"]["annotations"].update({PHASE: "success"})
                )
                self.api.change("nodes", name, lambda one: one["metadata"]["annotations"].pop(LOCK))

    def _taken(self) -> dict[str, list[int]]:
        """Return the memory of each part that bound pods have of the card of each node."""
        found: dict[str, list[int]] = {}
        for key, thing in self.api.objects["pods"].items():
            name = thing["spec"].get("nodeName", "")
            if not name or thing["status"].get("phase") == "Succeeded":
                continue
            written = thing["metadata"].get("annotations", {}).get(ALLOCATED, "")
            card, _, memory, *_ = [*written.split(","), "", "", ""]
            if card != f"{name}-0":
                self._blame(f"pod {key} is bound to {name} and was given {written!r}")
                continue
            if int(memory) != _memory(thing):
                self._blame(f"pod {key} asks for {_memory(thing)} MB and was given {written!r}")
            found.setdefault(name, []).append(int(memory))
        return found

    def _check_room(self) -> None:
        super()._check_room()
        for name, parts in self._taken().items():
            if sum(parts) > MEMORY or len(parts) > PLACES:
                self._blame(f"the card of node {name} has {parts} taken of {MEMORY} MB in {PLACES} places")
        self._serve()

    def _has_room(self, thing: Json, name: str, used: dict[str, int]) -> bool:
        parts = self._taken().get(name, [])
        has_place = len(parts) < PLACES and sum(parts) + _memory(thing) <= MEMORY
        return has_place and super()._has_room(thing, name, used)


def _memory(thing: Json) -> int:
    return int(thing["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"])
