"""Container images: their names, and the nodes that have them.

As in kube-scheduler, a node has its images under exactly the names it reports, while an image name in a pod
gets `:latest` where it has no tag.

Nodes, pods and the cache use this module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.base.change_log import ChangeLog
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
    moment. `changes` are the names of images whose values changed.
    """

    def __init__(self) -> None:
        self.changes = ChangeLog[str]()
        # The nodes of each image, with the size of the image there.
        self._homes: dict[str, dict[str, int]] = {}
        # The last version of each image that a node got.
        self._images: dict[str, NodeImage] = {}
        self._noted: list[tuple[str, Mapping[str, int], Mapping[str, int]]] = []

    def update(self, node: str, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Note that `node` had the images `old` and now has `new`, both sizes by name."""
        if old != new:
            self._noted.append((node, old, new))

    def take_changed(self) -> bool:
        """Apply the noted changes. Return whether there are any."""
        if not self._noted:
            return False
        for each in self._noted:
            self._take(*each)
        self._noted.clear()
        return True

    def _take(self, node: str, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        for name in old.keys() - new.keys():
            homes = self._homes[name]
            homes.pop(node, None)
            if not homes:
                del self._homes[name]
                self._images.pop(name, None)
            self.changes.note(name, len(self._homes))
        for name, size in new.items():
            if old.get(name) != size:
                self._homes.setdefault(name, {})[node] = size
                self.changes.note(name, len(self._homes))

    def homes(self, name: str) -> tuple[Collection[str], list[NodeImage]]:
        """Return the nodes that have an image under a name, and the image on each: one object per size."""
        homes = self._homes.get(name, {})
        images = {size: NodeImage(size, len(homes)) for size in {*homes.values()}}
        if len(images) == 1:
            return homes, [*images.values()] * len(homes)
        return homes, list(map(images.__getitem__, homes.values()))

    def image(self, name: str, size: int) -> NodeImage:
        """Return an image of a node: equal values share one object. A node that left counts itself."""
        homes = self._homes.get(name)
        if homes is None:
            return NodeImage(size, 1)
        count, known = len(homes), self._images.get(name)
        if known is None or known.size_bytes != size or known.node_count != count:
            known = self._images[name] = NodeImage(size, count)
        return known


class SpreadImages(FrozenMap[str, NodeImage]):
    """The images of a node, with the number of nodes that have each.

    The values are made when they are read, and those of changed images again: many nodes have an image, and
    few of them are asked for it before the next node gets it.
    """

    __slots__ = ("_made", "_sizes", "_spread")

    def __init__(self, spread: ImageSpread, sizes: FrozenMap[str, int]) -> None:
        self.derived = None
        self._spread, self._sizes = spread, sizes.entries
        self._made: tuple[int, dict[str, NodeImage]] = (-1, {})

    def belongs_to(self, spread: ImageSpread, sizes: FrozenMap[str, int]) -> bool:
        """Return whether the images have these sizes, and are counted there."""
        return self._spread is spread and self._sizes == sizes.entries

    @property
    def entries(self) -> Mapping[str, NodeImage]:  # type: ignore[override]
        version, made = self._made
        changes, sizes, image = self._spread.changes, self._sizes, self._spread.image
        position = changes.position
        if version != position:
            changed = changes.since(version) if position - version < len(sizes) else None
            if changed is None:
                made = {name: image(name, size) for name, size in sizes.items()}
            elif mine := sizes.keys() & changed:
                # Another object: whoever iterates over the former one is not disturbed.
                made = {**made, **{name: image(name, sizes[name]) for name in mine}}
            self._made = position, made
        return made

    # The hot path: most rules read one image, or none.

    def __contains__(self, name: object) -> bool:
        return name in self._sizes

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __getitem__(self, name: str) -> NodeImage:
        return self._spread.image(name, self._sizes[name])

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def ordered(self) -> tuple[tuple[str, NodeImage], ...]:
        return tuple(self.entries.items())

    def __hash__(self) -> int:
        return hash(frozenset(self.entries.items()))
