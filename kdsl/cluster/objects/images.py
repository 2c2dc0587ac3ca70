"""Container images: their names, and the nodes that have them.

As in kube-scheduler, a node has its images under exactly the names it reports, while an image name in a pod
gets `:latest` where it has no tag.

Nodes, pods and the cache use this module.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.base.frozen_map import FrozenMap


@dataclass(frozen=True, slots=True)
class NodeImage:
    """An image on a node: its size in bytes, and the number of nodes that have it."""

    size_bytes: int
    node_count: int


NO_SIZES: Final[FrozenMap[str, int]] = FrozenMap()
NO_IMAGES: Final[FrozenMap[str, NodeImage]] = FrozenMap()


def tagged(name: str) -> str:
    """Return the name of an image with `:latest` where there is no tag or digest after the last `/`."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


class ImageSpread:
    """The nodes of each image.

    The cache notes changes at once and applies them together with its snapshot: both then describe the same
    moment.
    """

    def __init__(self) -> None:
        # The nodes of each image, with the size of the image there.
        self._homes: dict[str, dict[str, int]] = {}
        # The last version of each image that a node got.
        self._images: dict[str, NodeImage] = {}
        self._noted: list[tuple[str, Mapping[str, int], Mapping[str, int]]] = []

    def update(self, node: str, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Note that `node` had the images `old` and now has `new`, both sizes by name."""
        if old != new:
            self._noted.append((node, old, new))

    def take_changed(self) -> dict[str, dict[str, NodeImage]] | None:
        """Apply the noted changes. Return the images that changed, by the name of each node that has one and
        by theirs; None where there is none.
        """
        if not self._noted:
            return None
        changed: set[str] = set()
        for each in self._noted:
            self._take(*each, changed)
        self._noted.clear()
        if not changed:
            return None
        found: defaultdict[str, dict[str, NodeImage]] = defaultdict(dict)
        for name in changed:
            homes = self._homes.get(name, {})
            images = {size: self._image(name, size) for size in {*homes.values()}}
            for node, size in homes.items():
                found[node][name] = images[size]
        return found

    def _take(self, node: str, old: Mapping[str, int], new: Mapping[str, int], changed: set[str]) -> None:
        for name in old.keys() - new.keys():
            homes = self._homes[name]
            homes.pop(node, None)
            if not homes:
                del self._homes[name]
                self._images.pop(name, None)
            changed.add(name)
        for name, size in new.items():
            if old.get(name) != size:
                self._homes.setdefault(name, {})[node] = size
                changed.add(name)

    def homes(self, name: str) -> tuple[Collection[str], list[NodeImage]]:
        """Return the nodes that have an image under a name, and the image on each: one object per size."""
        homes = self._homes.get(name, {})
        images = {size: NodeImage(size, len(homes)) for size in {*homes.values()}}
        return homes, list(map(images.__getitem__, homes.values()))

    def images(self, sizes: Mapping[str, int]) -> FrozenMap[str, NodeImage]:
        """Return the images of a node, which has each of `sizes`, with the number of nodes of each image."""
        if not sizes:
            return NO_IMAGES
        return FrozenMap({name: self._image(name, size) for name, size in sizes.items()})

    def _image(self, name: str, size: int) -> NodeImage:
        """Return an image of a node: nodes with equal values share one object."""
        count, known = len(self._homes[name]), self._images.get(name)
        if known is None or known.size_bytes != size or known.node_count != count:
            known = self._images[name] = NodeImage(size, count)
        return known
