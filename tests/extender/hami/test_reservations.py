"""Reservations of filter: each counts until the pod is bound or gone, whatever happens in between."""

from __future__ import annotations

from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.extender.hami.reservations import Reservations
from kdsl.live.watching.changes import LivePod, ObjectChange, Verb

RECORD = "hami.io/vgpu-devices-allocated"


def pod(time: int | None = None, node: str = "n1", uid: str = "u1", **fields: str) -> PodInfo:
    written = {} if time is None else {
        "hami.io/vgpu-node": node, "hami.io/vgpu-time": str(time), RECORD: f"{node}-g0,NVIDIA,1,1:;"
    }  # fmt: skip
    return PodInfo("a", uid=uid, annotations=FrozenMap(written), **fields)


def change(thing: PodInfo, verb: Verb = Verb.PUT) -> ObjectChange:
    return ObjectChange(verb, "pods", thing.key, thing.uid, "1", LivePod(thing, "1"))


class Held:
    def __init__(self, *nodes: str) -> None:
        self.cache = ClusterCache()
        for name in nodes or ("n1", "n2"):
            self.cache.add_node(NodeFacts(name))
        self.reservations = Reservations(self.cache, [RECORD])

    def apply(self, thing: PodInfo, verb: Verb = Verb.PUT) -> str:
        """Take in a change, and return the node that the pod counts on then."""
        self.reservations.apply(change(thing, verb))
        if verb is Verb.DROP:
            self.cache.remove_pod(thing.key)
        elif thing.node_name:
            self.cache.add_pod(thing)
        return self.at()

    def at(self) -> str:
        self.reservations.settle()
        found = self.cache.pod("default/a")
        return "" if found is None else found.node_name


def test_old_news_changes_nothing_and_newer_news_does() -> None:
    held = Held()
    held.reservations.give(pod(100), "n1")
    assert held.apply(pod()) == "n1"
    assert held.apply(pod(99, "n2")) == "n1"
    assert held.apply(pod(100, "n2")) == "n1"
    assert held.apply(pod(101, "n2")) == "n2"


def test_it_is_there_again_after_a_restart_whatever_comes_first() -> None:
    held = Held("n2")
    assert held.apply(pod(100)) == ""
    held.cache.add_node(NodeFacts("n1"))
    assert held.at() == "n1"


def test_without_a_record_there_is_nothing_to_count() -> None:
    held = Held()
    chosen = FrozenMap({"hami.io/vgpu-node": "n1", "hami.io/vgpu-time": "5"})
    assert held.apply(pod().with_fields(annotations=chosen)) == ""


def test_what_was_taken_back_stays_so_until_it_is_given_anew() -> None:
    held = Held()
    held.reservations.give(pod(100), "n1")
    held.reservations.take_back(pod(100))
    assert held.apply(pod(100)) == ""
    assert held.apply(pod(101, "n2")) == "n2"


def test_another_pod_of_the_name_has_nothing_of_it() -> None:
    held = Held()
    held.reservations.give(pod(100), "n1")
    assert held.apply(pod(100), Verb.DROP) == ""
    assert held.apply(pod(uid="u2")) == ""
    assert held.apply(pod(100, "n2", uid="u2")) == "n2"


def test_a_bound_pod_counts_where_it_is() -> None:
    held = Held()
    held.reservations.give(pod(100), "n1")
    assert held.apply(pod(100, node_name="n2")) == "n2"
    assert len(held.reservations) == 0


def test_a_cache_that_forgets_is_reminded() -> None:
    held = Held()
    held.reservations.give(pod(100), "n1")
    held.cache.forget("default/a")
    assert held.at() == "n1"


def test_a_pod_that_ends_leaves_its_cards() -> None:
    held = Held()
    held.reservations.give(pod(100), "n1")
    held.reservations.apply(change(pod(100, phase="Failed")))
    assert len(held.reservations) == 0
