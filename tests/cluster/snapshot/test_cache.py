"""The cache: a snapshot after any events is the one of the objects that are left; assuming, forgetting and confirming."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.quantity import INT64_MAX
from kdsl.cluster.objects.images import ImageSpread, NodeImage
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.snapshot import Snapshot

from tests.cluster.build import container, facts, pod_info

NODES = ("n1", "n2", "n3", "n4")
PODS = tuple(f"default/p{i}" for i in range(6))

node_names = st.sampled_from(NODES)
pod_keys = st.sampled_from(PODS)
zones = st.sampled_from(["", "z1", "z2"])
images = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from([10, 20]), max_size=2)


def make_pod(key: str, cpu: int, port: int, node: str = "") -> PodInfo:
    ports = [{"containerPort": 1, "hostPort": port}] if port else []
    foo = {"example.com/foo": "1"} if cpu == 2 else {}
    spec: dict[str, object] = {"containers": [{**container(cpu=str(cpu), **foo), "ports": ports}]}
    return pod_info(spec, name=key.split("/")[1]).with_fields(node_name=node)


pods = st.builds(make_pod, pod_keys, st.integers(0, 3), st.sampled_from([0, 80, 81]))
FACTS = {
    (name, zone): facts(name, zone=zone) if zone else facts(name)
    for name in NODES
    for zone in ("", "z1", "z2")
}


def make_facts(name: str, zone: str, sizes: dict[str, int]) -> NodeFacts:
    base = FACTS[name, zone]
    return replace(base, image_sizes=type(base.image_sizes)(sizes))


def check_equal(snapshot: Snapshot, fresh: Snapshot) -> None:
    """Compare everything but the numbers of rows and versions and the order of pods on a node."""
    assert len(snapshot) == len(fresh)
    assert sorted(snapshot.names[row] for row in snapshot.order) == sorted(
        fresh.names[row] for row in fresh.order
    )
    for row in snapshot.order.tolist():
        info, other = snapshot.info(row), fresh.node(snapshot.names[row])
        assert other is not None
        assert snapshot.row_of(info.name) == row
        assert (info.facts, info.images) == (other.facts, other.images)
        assert (info.requested, info.scored_requests) == (other.requested, other.scored_requests)
        assert sorted(info.pods, key=lambda pod: pod.key) == sorted(other.pods, key=lambda pod: pod.key)
        assert set(info.used_host_ports) == set(other.used_host_ports)
    check_columns(snapshot)
    assert set(fresh.resource_names) <= set(snapshot.resource_names)


def check_columns(snapshot: Snapshot) -> None:
    """Columns say what the nodes say; free rows are empty."""
    used = set(snapshot.order.tolist())
    for row, name in enumerate(snapshot.names):
        assert bool(name) == (row in used)
        info = snapshot.info(row) if name else None
        assert snapshot.pod_counts[row] == (info.pod_count if info else 0)
        for resource in (*snapshot.resource_names, "example.com/nobody"):
            for column, amounts in (
                (snapshot.allocatable(resource), info and info.allocatable),
                (snapshot.requested(resource), info and info.requested),
                (snapshot.scored_requests(resource), info and info.scored_requests),
            ):
                assert len(column) == len(snapshot.names)
                assert column[row] == (amounts.amount(resource) if amounts is not None else 0)
    if isinstance(snapshot, LiveSnapshot):
        check_bounds(snapshot)


def check_bounds(snapshot: LiveSnapshot) -> None:
    """No amount of a node is beyond its bounds."""
    for resource in (*snapshot.resource_names, "example.com/nobody"):
        for family in ("allocatable", "requested", "scored_requests"):
            least, largest = snapshot.bounds(family, resource)
            amounts = getattr(snapshot, family)(resource)[snapshot.order]
            assert ((least <= amounts) & (amounts <= largest)).all()


class CacheMachine(RuleBasedStateMachine):
    """Random events, and beside the cache the plain objects that should be left."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = ClusterCache()
        self.nodes: dict[str, NodeFacts] = {}
        self.pods: dict[str, PodInfo] = {}
        self.assumed: set[str] = set()
        self.seen: dict[str, tuple[object, ...]] = {}

    @rule(name=node_names, zone=zones, sizes=images)
    def put_node(self, name: str, zone: str, sizes: dict[str, int]) -> None:
        self.nodes[name] = make_facts(name, zone, sizes)
        self.cache.update_node(self.nodes[name])

    @rule(name=node_names)
    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.cache.remove_node(name)

    @rule(pod=pods, node=node_names)
    def place_pod(self, pod: PodInfo, node: str) -> None:
        self.pods[pod.key] = pod.on(node)
        self.assumed.discard(pod.key)
        self.cache.add_pod(pod.on(node))

    @rule(pod=pods, node=st.sampled_from(("", *NODES)), phase=st.sampled_from(["Succeeded", "Failed"]))
    def finish_pod(self, pod: PodInfo, node: str, phase: str) -> None:
        self.pods.pop(pod.key, None)
        self.assumed.discard(pod.key)
        self.cache.update_pod(pod.with_fields(node_name=node, phase=phase))

    @rule(pod=pods)
    def update_pending_pod(self, pod: PodInfo) -> None:
        if pod.key not in self.assumed:
            self.pods.pop(pod.key, None)
        self.cache.update_pod(pod)

    @rule(key=pod_keys)
    def remove_pod(self, key: str) -> None:
        self.pods.pop(key, None)
        self.assumed.discard(key)
        self.cache.remove_pod(key)

    @precondition(lambda self: self.nodes)
    @rule(pod=pods, data=st.data())
    def assume(self, pod: PodInfo, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(sorted(self.nodes)))
        if pod.key in self.pods:
            with pytest.raises(ValueError, match="already"):
                self.cache.assume(pod, node)
            return
        self.pods[pod.key] = self.cache.assume(pod, node)
        self.assumed.add(pod.key)

    @rule(key=pod_keys)
    def forget(self, key: str) -> None:
        assert self.cache.forget(key) == (key in self.assumed)
        if key in self.assumed:
            del self.pods[key]
            self.assumed.discard(key)

    @rule(key=pod_keys)
    def confirm(self, key: str) -> None:
        if key in self.assumed:
            self.cache.add_pod(self.pods[key])
            self.assumed.discard(key)

    @rule()
    def take_snapshot(self) -> None:
        fresh = ClusterCache()
        for node in self.nodes.values():
            fresh.add_node(node)
        for pod in self.pods.values():
            fresh.add_pod(pod)
        snapshot = self.cache.snapshot()
        check_equal(snapshot, fresh.snapshot())
        self.check_versions(snapshot)

    def check_versions(self, snapshot: Snapshot) -> None:
        """Assert that each changed part has another version."""
        now: dict[str, tuple[object, ...]] = {}
        for row in snapshot.order.tolist():
            info = snapshot.info(row)
            static, usage = int(snapshot.static_version[row]), int(snapshot.usage_version[row])
            now[info.name] = (info.facts, static, info.pods, usage, info.images, snapshot.images_version)
            old = self.seen.get(info.name)
            if old is not None:
                assert old[0] == info.facts or old[1] != static
                assert old[2] == info.pods or old[3] != usage
                assert old[4] == info.images or old[5] != snapshot.images_version
            assert static <= snapshot.version
            assert usage <= snapshot.version
        self.seen = now

    @invariant()
    def assumptions_agree(self) -> None:
        assert {key for key in PODS if self.cache.is_assumed(key)} == self.assumed
        assert {key: pod for key in PODS if (pod := self.cache.pod(key))} == self.pods


TestCache = CacheMachine.TestCase
TestCache.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)


def test_nothing_changes_without_events() -> None:
    cache = ClusterCache()
    cache.add_node(facts("n1"))
    cache.add_pod(make_pod("default/p", 1, 0, "n1"))
    snapshot = cache.snapshot()
    version, order = snapshot.version, snapshot.order
    cache.update_node(facts("n1"))
    cache.add_pod(make_pod("default/p", 1, 0, "n1"))
    assert cache.snapshot().version == version
    assert cache.snapshot().order is order


def test_a_placement_touches_one_row() -> None:
    cache = ClusterCache()
    for name in NODES:
        cache.add_node(facts(name, {"a": 1}))
    snapshot = cache.snapshot()
    static, usage = snapshot.static_version.copy(), snapshot.usage_version.copy()
    versions = (snapshot.images_version, snapshot.nodes_version)
    cache.assume(make_pod("default/p", 1, 0), "n2")
    after = cache.snapshot()
    row = after.row_of("n2")
    assert (after.usage_version != usage).nonzero()[0].tolist() == [row]
    assert (after.static_version == static).all()
    assert (after.images_version, after.nodes_version) == versions
    assert after.version > max(versions)


def test_images_know_how_many_nodes_have_them() -> None:
    cache = ClusterCache()
    cache.add_node(facts("n1", {"a": 10, "b": 5}))
    cache.add_node(facts("n2", {"a": 10}))

    def counts(node: str) -> dict[str, int]:
        info = cache.snapshot().node(node)
        assert info is not None
        return {name: image.node_count for name, image in info.images.items()}

    assert counts("n1") == {"a": 2, "b": 1}
    before = cache.snapshot().images_version
    cache.update_node(facts("n2", {"b": 5}))
    assert counts("n1") == {"a": 1, "b": 2}
    assert cache.snapshot().images_version > before
    cache.remove_node("n2")
    assert counts("n1") == {"a": 1, "b": 1}


def test_images_are_made_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    original = ImageSpread.image

    def make(spread: ImageSpread, name: str, size: int) -> NodeImage:
        made.append(name)
        return original(spread, name, size)

    cache, common = ClusterCache(), {f"i{number}": 10 for number in range(20)}
    for number in range(50):
        cache.add_node(facts(f"n{number}", common))
    before = cache.snapshot().node("n1")
    monkeypatch.setattr(ImageSpread, "image", make)
    cache.update_node(facts("n1", {"i0": 20, "i1": 10}))
    # One more node, or another image of one, costs the same in large clusters.
    cache.snapshot()
    assert made == []
    infos = [cache.snapshot().node(f"n{number}") for number in range(50)]
    assert [{image.node_count for image in info.images.values()} for info in infos if info] == [
        {50} if number == 1 else {49, 50} for number in range(50)
    ]
    assert len(made) == 49 * 20 + 2
    assert infos[2] is not None
    assert infos[2].images["i0"] is infos[3].images["i0"]  # type: ignore[union-attr]
    assert hash(infos[2].images) == hash(infos[3].images)  # type: ignore[union-attr]
    assert infos[2].images.ordered[0] == ("i0", NodeImage(10, 50))
    # Only changed images are made again.
    made.clear()
    shown, values = infos[2].images.items(), infos[3].images
    cache.update_node(facts("n1", {"i0": 20, "i2": 10}))
    cache.snapshot()
    assert [dict(values)[name].node_count for name in ("i0", "i1", "i2", "i3")] == [50, 49, 50, 49]
    assert dict(shown)["i1"].node_count == 50
    made.clear()
    assert values.get("i1") == NodeImage(10, 49)
    assert infos[2].images.ordered == values.ordered
    assert sorted(made) == ["i1", "i1", "i2", "i2"]
    # A node that lost its images counts itself.
    cache.remove_node("n1")
    cache.snapshot()
    assert before is not None
    assert before.images["i1"] == NodeImage(10, 49)
    for number in range(50):
        cache.remove_node(f"n{number}")
    cache.snapshot()
    assert before.images["i1"] == NodeImage(10, 1)


def test_a_copy_counts_its_own_nodes() -> None:
    cache = ClusterCache()
    for name in ("n1", "n2"):
        cache.add_node(facts(name, {"a": 10}))
    mine = cache.snapshot()
    other = cache.copy()
    other.remove_node("n2")
    node, kept = other.snapshot().node("n1"), mine.node("n1")
    assert node is not None
    assert kept is not None
    assert (node.images["a"].node_count, kept.images["a"].node_count) == (1, 2)


def test_a_node_may_be_asked_for_more_than_int64_holds() -> None:
    cache = ClusterCache()
    cache.add_node(facts("n1"))
    many = [container(f"c{i}", memory="8Pi") for i in range(1025)]
    for name in ("p1", "p2"):
        cache.add_pod(pod_info({"containers": many, "nodeName": "n1"}, name=name))
    assert cache.snapshot().requested("memory").tolist() == [INT64_MAX]
    cache.remove_pod("default/p1")
    cache.remove_pod("default/p2")
    assert cache.snapshot().requested("memory").tolist() == [0]


def test_rows_are_used_again_and_the_order_holds_until_nodes_come_or_go() -> None:
    cache = ClusterCache()
    for name, zone in (("a", "1"), ("b", "1"), ("c", "2")):
        cache.add_node(facts(name, zone=zone))

    def order() -> list[str]:
        snapshot = cache.snapshot()
        return [snapshot.names[row] for row in snapshot.order]

    assert order() == ["a", "c", "b"]
    cache.update_node(facts("b", zone="3"))
    assert order() == ["a", "c", "b"]
    row = cache.snapshot().row_of("c")
    cache.remove_node("c")
    cache.add_node(facts("d", zone="1"))
    assert order() == ["a", "b", "d"]
    assert cache.snapshot().row_of("d") == row
    assert len(cache.snapshot().names) == 3
    cache.remove_node("d")
    assert cache.snapshot().names[row or 0] == ""
    with pytest.raises(KeyError):
        cache.snapshot().info(row or 0)


def test_a_pod_waits_for_its_node() -> None:
    cache = ClusterCache()
    cache.add_pod(make_pod("default/p", 1, 0, "n1"))
    assert len(cache.snapshot()) == 0
    cache.add_node(facts("n1"))
    assert cache.snapshot().pod_counts.tolist() == [1]
    cache.remove_node("n1")
    cache.remove_pod("default/p")
    cache.add_node(facts("n1"))
    assert cache.snapshot().pod_counts.tolist() == [0]


def test_a_pod_may_come_back_on_another_node_than_it_was_assumed_on() -> None:
    cache = ClusterCache()
    cache.add_node(facts("n1"))
    cache.add_node(facts("n2"))
    cache.assume(make_pod("default/p", 1, 0), "n1")
    cache.add_pod(make_pod("default/p", 1, 0, "n2"))
    assert cache.snapshot().pod_counts.tolist() == [0, 1]
    assert not cache.forget("default/p")
    with pytest.raises(KeyError, match="no node n9"):
        cache.assume(make_pod("default/q", 1, 0), "n9")


def test_a_cache_of_objects() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
    }
    cache = ClusterCache.of(read_values([pod, node, {**pod, "metadata": {"name": "q"}}]).objects)
    assert cache.snapshot().pod_counts.tolist() == [2]


def test_a_copy_goes_its_own_way() -> None:
    cache = ClusterCache()
    cache.add_node(facts("a"))
    cache.add_node(facts("b"))
    cache.assume(PodInfo("p"), "b")
    other = cache.copy()
    assert other.is_assumed("default/p") and list(other.snapshot().names) == ["a", "b"]
    other.remove_pod("default/p")
    other.remove_node("a")
    other.add_pod(PodInfo("q", node_name="b"))
    assert [pod.name for info in cache.nodes() for pod in info.pods] == ["p"]
    assert [pod.name for info in other.nodes() for pod in info.pods] == ["q"]
    assert len(cache.snapshot().order) == 2 and len(other.snapshot().order) == 1


def test_a_copy_visits_nodes_in_the_order_of_the_cache() -> None:
    def in_zone(name: str, zone: str) -> NodeFacts:
        return NodeFacts(name, labels=FrozenMap({"topology.kubernetes.io/zone": zone}))

    def order(of: ClusterCache) -> list[str]:
        snapshot = of.snapshot()
        return [snapshot.info(row).name for row in snapshot.order.tolist()]

    cache = ClusterCache()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        cache.add_node(in_zone(name, zone))
    assert order(cache) == ["a1", "b1", "a2"]
    # As in kube-scheduler, a new zone counts when a node comes or goes.
    cache.add_node(in_zone("a1", "b"))
    other = cache.copy()
    assert order(other) == order(cache) == ["a1", "b1", "a2"]
    for each in (cache, other):
        each.add_node(in_zone("c1", "c"))
    assert order(other) == order(cache)
    cache.add_node(in_zone("c2", "c"))
    assert order(cache.copy()) == order(cache)


def test_who_repeats_the_events_has_the_pods_of_a_node_in_the_same_order() -> None:
    """As a replay of a record does: a pod that loses its nomination when it is bound changes without an event."""
    cache, other = ClusterCache(), ClusterCache()
    for each in (cache, other):
        each.add_node(facts("n1"))
    cache.observe(lambda event: other.add_pod(event.after) if isinstance(event.after, PodInfo) else None)
    cache.assume(PodInfo("p", nominated_node_name="n1"), "n1")
    cache.add_pod(PodInfo("q", node_name="n1"))
    cache.add_pod(PodInfo("p", node_name="n1"))
    (info,), (repeated,) = cache.nodes(), other.nodes()
    assert [pod.name for pod in info.pods] == [pod.name for pod in repeated.pods] == ["p", "q"]
    assert info.pods[0] == PodInfo("p", node_name="n1") and not cache.is_assumed("default/p")
