"""During a run, and only then, the garbage collector skips the objects that existed before it."""

from __future__ import annotations

import gc
import weakref

import pytest
from kdsl.base.garbage import NEW_OBJECTS, collect_seldom, growing_heap, settle_heap, settled_heap


@pytest.fixture(autouse=True)
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what `tests/conftest.py` does for every test."""
    monkeypatch.setattr("kdsl.base.garbage._Heap.is_settled", False)
    gc.unfreeze()


class Ring:
    """A cycle of one."""

    def __init__(self) -> None:
        self.me = self


def test_only_what_comes_later_is_collected() -> None:
    before = Ring()
    old = weakref.ref(before)
    with settled_heap():
        later = Ring()
        young = weakref.ref(later)
        del before, later
        gc.collect()
        assert old() is not None and young() is None
    gc.collect()
    assert old() is None


def test_the_collector_sees_everything_again_after_an_error() -> None:
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        with pytest.raises(RuntimeError), settled_heap():
            assert gc.get_freeze_count()
            assert gc.get_threshold() == (NEW_OBJECTS, 10, 10)
            raise RuntimeError
        assert not gc.get_freeze_count()
        assert gc.get_threshold() == (700, 10, 10)
    finally:
        gc.set_threshold(*thresholds)


def test_the_inner_of_two_settled_heaps_leaves_the_outer_one_settled() -> None:
    before = Ring()
    old = weakref.ref(before)
    with settled_heap():
        undo = settle_heap()
        del before
        undo()
        gc.collect()
        assert old() is not None
    gc.collect()
    assert old() is None


def test_a_growing_heap_is_left_alone_and_only_while_it_grows() -> None:
    @growing_heap()
    def read() -> bool:
        return gc.isenabled()

    assert not read() and gc.isenabled()
    with growing_heap():
        assert not read() and not gc.isenabled(), "whoever was first gives the collector back"
    assert gc.isenabled()


def test_a_command_collects_seldom_and_never_more_often() -> None:
    thresholds = gc.get_threshold()
    try:
        for before, after in ((700, NEW_OBJECTS), (2 * NEW_OBJECTS, 2 * NEW_OBJECTS)):
            gc.set_threshold(before, 10, 10)
            collect_seldom()
            assert gc.get_threshold() == (after, 10, 10)
    finally:
        gc.set_threshold(*thresholds)
