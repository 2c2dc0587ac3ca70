"""A long life of a cluster: joined predicates answer for pods that are new to the profile as they do alone."""

from __future__ import annotations

from random import Random

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.status import Code, Status
from kdsl.plan.memo import predicates as predicates_module
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.rules.compiled_profile import CompiledProfile, compile_profile

from tests.plan.lab import DEFAULT_QUEUE, rules
from tests.plan.memo.test_joined import TERMS, joined_answers, one_by_one

PREDICATES = {
    "Zone": 'applies when "zone" in pod.labels'
    ' require node.labels[?"zone"] == pod.labels[?"zone"] else "another zone"',
    "Busy": 'require node.podCount < pod.priority else "${node.podCount} pods"',
    "Taints": 'require node.taints.all(t, pod.tolerates(t)) else "taint"',
    "Named": 'narrow to (pod.containerCount == 3 ? optional.of(["n1", "n2"]) : optional.none()) else "unnamed"'
    ' require node.labels.size() < 4 else "labels"',
    "Images": 'require pod.images.all(i, !(i in node.images) || node.images[i].nodeCount < 3) else "image"',
    "Fails": 'on error reject "fails on ${node.name}"'
    ' require 10 / (node.labels.size() - pod.containerCount) < 6 else "labels"',
    "Count": 'require cluster.nodeCount % 3 != pod.containerCount else "count"',
    "Alone": 'require cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node) == 0 else "anti"',
    "Cpu": 'require node.allocatable["cpu"] >= pod.requests["cpu"] else "cpu"',
}
TIGHTENINGS = (
    'require node.podCount < pod.containerCount else unresolvable "tightly busy"',
    'applies when pod.priority > 1 require "zone" in node.labels else "no zone"',
    'require !node.unschedulable else unresolvable "unschedulable"',
    'require cluster.pods.size() % 4 != pod.priority else "pods"',
)


def labels(random: Random, share: float) -> FrozenMap[str, str]:
    values = (("zone", "abc"), ("k", "ab"), ("j", "a"), ("q", "z"))
    return FrozenMap({key: random.choice(choice) for key, choice in values if random.random() < share})


def drawn_node(random: Random, name: str) -> NodeFacts:
    return NodeFacts(
        name,
        labels=labels(random, 0.6),
        unschedulable=random.random() < 0.1,
        taints=random.choice([(), (), (Taint("t", "", "NoSchedule"),)]),
        allocatable=Resources({"cpu": random.choice([100, 700, 5000])}),
        image_sizes=FrozenMap({name: 1 for name in ("i:1", "j:1") if random.random() < 0.3}),
    )


def drawn_pod(random: Random, number: int, node: str = "") -> PodInfo:
    """Draw a pod; some request an amount of CPU that no other pod does."""
    return PodInfo(
        f"p{number}",
        random.choice("xy"),
        labels=labels(random, 0.4),
        priority=random.randrange(4),
        container_count=random.randrange(4),
        tolerations=random.choice([(), (Toleration("t", "Exists", "", ""),)]),
        required_anti_affinity=tuple(random.sample(TERMS, random.choice([0, 0, 1, 2]))),
        images=tuple(random.sample(["i:1", "j:1"], random.randrange(3))),
        requests=Resources({"cpu": random.choice([0, 500, number])}),
        node_name=node,
    )


class Cluster:
    """A cluster of at most `size` nodes that changes at random."""

    def __init__(self, random: Random, size: int) -> None:
        self.cache = ClusterCache()
        self._random = random
        self._names = [f"n{at}" for at in range(size)]
        self._nodes: dict[str, None] = {}
        self._pods: list[PodInfo] = []

    def change(self, number: int) -> None:
        random, cache = self._random, self.cache
        draw = random.random()
        if draw < 0.35 or not self._nodes:
            node = drawn_node(random, random.choice(self._names))
            (cache.update_node if node.name in self._nodes else cache.add_node)(node)
            self._nodes[node.name] = None
        elif draw < 0.42:
            name = random.choice([*self._nodes])
            del self._nodes[name]
            cache.remove_node(name)
        elif draw < 0.8 or not self._pods:
            self._pods.append(drawn_pod(random, number, random.choice([*self._nodes])))
            cache.add_pod(self._pods[-1])
        else:
            cache.remove_pod(self._pods.pop(random.randrange(len(self._pods))).key)


def drawn_profile(random: Random) -> str:
    """Write a profile of some predicates in any order, with tightenings of some of them."""
    names = random.sample([*PREDICATES], random.randrange(2, len(PREDICATES) + 1))
    text = "".join(f"predicate {name} {{ {PREDICATES[name]} }}\n" for name in names)
    text += f'{DEFAULT_QUEUE}\nprofile p0 {{ scheduler "0" queue Q predicates {{ {" ".join(names)} }} }}\n'
    count = random.randrange(4)
    for at in range(count):
        tightening = f"tighten {random.choice(names)} {{ {random.choice(TIGHTENINGS)} }}"
        text += f'profile p{at + 1} extends p{at} {{ scheduler "{at + 1}" {tightening} }}\n'
    return text + f'profile p extends p{count} {{ scheduler "p" }}\n'


def plugins(text: str) -> CompiledProfile:
    found = rules(text)
    return compile_profile(found, found.profiles["t.p"])


@pytest.mark.parametrize("most_statuses", [predicates_module.MAX_STATUSES, 6])
@pytest.mark.parametrize("seed", [*range(8), 19])
def test_joined_predicates_answer_as_they_do_alone_in_a_long_life(
    seed: int, most_statuses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predicates_module, "MAX_STATUSES", most_statuses)
    random = Random(seed)
    text = drawn_profile(random)
    joined, alone = PredicateMemo(plugins(text).predicates), plugins(text).predicates
    cluster = Cluster(random, random.choice([4, 20]))
    for number in range(100):
        for _ in range(random.randrange(3)):
            cluster.change(number)
        pod, nodes = drawn_pod(random, number), NodeSet.all(cluster.cache.snapshot())
        found, statuses = joined_answers(joined, pod, nodes)
        expected, each = one_by_one(alone, pod, nodes)
        assert found == expected
        rejections = [answer for _, answer in found if isinstance(answer, Status)]
        # A pod that PreFilter rejects is not filtered.
        if all(answer.code is Code.SKIP for answer in rejections):
            assert statuses == each
