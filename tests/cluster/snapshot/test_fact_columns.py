"""Fact columns follow their nodes, row by row."""

from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.fact_columns import ABSENT, FactColumns

from tests.plan.lab import node


def _values(cache: ClusterCache, key: str) -> dict[str, object]:
    snapshot = cache.snapshot().live
    column = FactColumns.of(snapshot).key("labels", key)
    names = snapshot.names
    found = {names[row]: column.values[column.codes[row]] for row in snapshot.order.tolist()}
    assert column.is_everywhere is (None not in found.values())
    return found


def test_a_column_follows_changed_new_and_removed_nodes() -> None:
    cache = ClusterCache()
    for name in ("a", "b"):
        cache.add_node(node(name, labels={"k": name}))
    assert _values(cache, "k") == {"a": "a", "b": "b"}
    cache.add_node(node("a", labels={"k": "x"}))
    cache.add_node(node("c"))
    assert _values(cache, "k") == {"a": "x", "b": "b", "c": None}
    cache.remove_node("b")
    cache.add_node(node("d", labels={"k": "d"}))
    assert _values(cache, "k") == {"a": "x", "c": None, "d": "d"}


@pytest.mark.parametrize("every", [1, 3])
def test_columns_of_images_are_those_of_the_nodes_that_have_them(every: int) -> None:
    cache = ClusterCache()
    snapshot = cache.snapshot().live

    def check() -> None:
        infos = {row: snapshot.info(row) for row in snapshot.order.tolist()}
        for image in ("x", "y", "nowhere"):
            column = FactColumns.of(snapshot).key("images", image)
            found = {row: column.values[column.codes[row]] for row in infos}
            assert found == {row: info.images.get(image) for row, info in infos.items()}
            assert column.is_everywhere is (None not in found.values())
            rows, images = snapshot.image(image)
            assert dict(zip(rows.tolist(), images, strict=True)) == {
                row: info.images[image] for row, info in infos.items() if image in info.images
            }

    steps: list[tuple[str, dict[str, int] | None]] = [
        *(("a", {"x": 1}), ("b", {}), ("b", {"x": 1, "y": 2}), ("a", {"y": 3}), ("c", {"x": 4}), ("b", None)),
        *(("a", {}), ("b", {"y": 2}), ("c", None), ("c", {}), ("b", {"y": 5}), ("b", {"x": 1})),
    ]
    for at, (name, images) in enumerate(steps):
        if images is None:
            cache.remove_node(name)
        else:
            cache.add_node(node(name, image_sizes=FrozenMap(images)))
        # The snapshot lags behind the cache here.
        if at % every == 0:
            cache.snapshot()
        check()


def test_only_changed_nodes_are_encoded_again() -> None:
    cache = ClusterCache()
    for name in ("a", "b"):
        cache.add_node(node(name, labels={"k": name}))
    facts = FactColumns.of(cache.snapshot().live)
    column = facts.key("labels", "k")
    row = cache.snapshot().row_of("b")
    column.codes[row] = ABSENT  # a full encoding would correct it
    cache.add_node(node("a", labels={"k": "x"}))
    cache.snapshot()
    assert facts.key("labels", "k").codes[row] == ABSENT


def test_values_that_went_are_forgotten() -> None:
    cache = ClusterCache()
    for number in range(3_000):
        cache.add_node(node("a", labels={"k": str(number)}))
        assert _values(cache, "k") == {"a": str(number)}
    assert len(FactColumns.of(cache.snapshot().live).key("labels", "k").values) < 2_000


def test_numbers_are_the_same_object_as_long_as_codes_stand_for_the_same() -> None:
    cache = ClusterCache()
    seen: dict[int, dict[object, int]] = {}
    for number in range(3_000):
        cache.add_node(node("a", labels={"k": str(number)}))
        column = FactColumns.of(cache.snapshot().live).key("labels", "k")
        assert list(column.numbers) == column.values
        before = seen.setdefault(id(column.numbers), column.numbers)
        assert before is column.numbers
        assert column.numbers[str(number)] == column.codes[0]
    assert len(seen) > 1
