"""Pods leave in their order, however they came and whoever went between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cycle.heaps import Heaps
from kdsl.hooks.errors import PluginError
from kdsl.hooks.specs import QueuedPod

from tests.cycle.world import plugin, pod, table

TABLES = {name: table({}, scheduler=name) for name in ("x", "y")}
STEPS = st.one_of(
    st.tuples(
        st.just("push"), st.integers(0, 9), st.integers(0, 2), st.integers(0, 2), st.sampled_from("xy")
    ),
    st.tuples(st.just("remove"), st.integers(0, 9)),
    st.tuples(st.just("pop")),
)


@given(st.lists(STEPS, max_size=60))
def test_the_first_of_all_comes_first(steps: list) -> None:  # type: ignore[type-arg]  # of several shapes
    heaps = Heaps()
    waiting: dict[str, tuple[int, int, int, int]] = {}
    for sequence, (what, *values) in enumerate(steps):
        if what == "push":
            number, due, priority, scheduler = values
            one = pod(f"p{number}", priority=priority, scheduler_name=scheduler)
            heaps.remove(one.key)
            heaps.push(TABLES[scheduler], one.key, QueuedPod(one, due, sequence), due)
            waiting[one.key] = (due, -priority, due, sequence)
        elif what == "remove":
            key = f"default/p{values[0]}"
            assert heaps.remove(key) == (waiting.pop(key, None) is not None)
        else:
            first = min(waiting, key=waiting.__getitem__, default=None)
            assert heaps.due == (None if first is None else waiting[first][0])
            assert heaps.pop() == first
            waiting.pop(first or "", None)
        assert len(heaps) == len(waiting)
    left = [heaps.pop() for _ in (*waiting, None)]
    assert left == [*sorted(waiting, key=waiting.__getitem__), None]


@pytest.mark.parametrize("names", [("a", "text"), ("b", "a", "text")])
def test_a_pod_that_cannot_be_compared_stays_out(names: tuple[str, ...]) -> None:
    keys = {"a": 1, "b": 2, "text": "x"}
    sorted_by = table({"Q": plugin(queue_sort=lambda queued: keys[queued.pod.name])}, queue="Q")
    heaps = Heaps()
    for sequence, name in enumerate(names):
        one = QueuedPod(pod(name), 0, sequence)
        if name == "text":
            with pytest.raises(PluginError, match="TypeError"):
                heaps.push(sorted_by, one.pod.key, one)
        else:
            heaps.push(sorted_by, one.pod.key, one)
    left = [heaps.pop() for _ in names]
    assert left == [*(f"default/{name}" for name in sorted({*names} - {"text"})), None]
