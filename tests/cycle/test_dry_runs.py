"""Dry runs on many nodes at once find the same victims as one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import pytest
from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.kinds import KubeObject
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision, Detail
from kdsl.cycle.judging import Judge
from kdsl.cycle.preemption import preempt
from kdsl.cycle.preemption.thinned import ThinnedNodes

from kdsl_plugins.volume_binding.needs import VolumeNeeds
from tests.plan.lab import rules

Json = dict[str, Any]
NODES, PENDING, CLAIMS = 40, 25, 30
HUGE, LARGE = 2**60, 2**50
"""Amounts that are too large to be summed over columns, of nodes and of pods."""
APPS, ZONES = "abcdef", "xyz"


def objects_of(values: list[Json]) -> tuple[KubeObject, ...]:
    read = read_values(values)
    assert not read.diagnostics, read.diagnostics[0]
    return read.objects


def node(random: Random, number: int) -> Json:
    room = {
        "cpu": str(random.randrange(3, 7)),
        "memory": str(HUGE if random.random() < 0.1 else 2**33),
        "pods": str(random.randrange(3, 9)),
    }
    taints = [{"key": "t", "effect": random.choice(["NoSchedule", "PreferNoSchedule"])}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"n{number}",
            "labels": {"zone": random.choice(ZONES), "kubernetes.io/hostname": f"n{number}"},
        },
        "spec": {"taints": taints if random.random() < 0.2 else []},
        "status": {"capacity": room, "allocatable": room},
    }


def pod(random: Random, name: str, priority: int, where: str = "") -> Json:
    app = random.choice(APPS)
    requests = {"cpu": f"{random.randrange(300, 3_000)}m", "memory": str(random.randrange(2**20, 2**32))}
    container: Json = {"name": "c", "image": "i:1", "resources": {"requests": requests}}
    if random.random() < 0.1:
        requests["memory"] = str(LARGE)
    if random.random() < 0.2:
        container["ports"] = [{"containerPort": 80, "hostPort": random.choice([8080, 8081])}]
    spec: Json = {"containers": [container], "priority": priority, "nodeName": where}
    if random.random() < 0.3:
        spec["tolerations"] = [{"key": "t", "operator": "Exists"}]
    if not where and random.random() < 0.3:
        spec["nodeSelector"] = {"zone": random.choice(ZONES)}
    selector = {"matchLabels": {"app": app}}
    if not where and random.random() < 0.2:
        term = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**term, "labelSelector": selector}]
    # Such a pod affects every pod of its app, on all nodes.
    if app == APPS[0] and random.random() < 0.3:
        avoided = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}]
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        spec["affinity"] = {"podAntiAffinity": {required: avoided}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "d", "uid": f"u-{name}", "labels": {"app": app}},
        "spec": spec,
        "status": {"startTime": f"2026-01-01T00:00:{random.randrange(60):02}Z"} if where else {},
    }


def budget(random: Random, number: int) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"b{number}", "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"app": random.choice(APPS)}}},
        "status": {"disruptionsAllowed": random.randrange(3)},
    }


RULES = """
predicate Cpu {
  require pod.requests["cpu"] <= node.allocatable["cpu"] - node.requested["cpu"] else "no cpu"
  require pod.requests["memory"] <= node.allocatable["memory"] - node.scoredRequests["memory"] else "no memory"
}
predicate Alike {
  report all
  require node.pods.filter(p, p.labels[?"app"] == pod.labels[?"app"]).size() < 3 else "two of ${pod.name}"
  for p in node.pods where p.priority > 20 { require p.name != pod.name + "0" else "${p.name} is here" }
  require node.podCount < 5 || node.labels[?"zone"].orValue("") == "x" else unresolvable "${node.podCount} pods on ${node.name}"
}
predicate Ports { require !pod.hostPorts.exists(p, node.usedHostPorts.exists(u, u.port == p.port)) else "ports" }
predicate Volumes {
  for d in cluster.limitedDrivers(pod) {
    let more = cluster.newVolumeCount(pod, d, node)
    require more == 0 || cluster.usedVolumeCount(d, node) + more <= cluster.volumeLimit(d, node) else "volumes"
  }
}
preemption Lower {
  victim when victim.priority < pod.priority
  order by victim.priority desc, victim.name
  choose by candidate.violations, candidate.victims.size(), candidate.victims[0].name
}
queue Q { order by pod.priority desc, pod.queuedAt }
profile p {
  scheduler "default-scheduler"
  queue Q
  predicates { Cpu Alike Ports Volumes }
  preemption Lower
}
"""
"""Rules that read the pods on a node in several ways, not all of which have a form over columns."""


COUNTING = RULES.replace(
    "predicate Ports",
    """predicate Counting {
  let mine = topology("zone").count(p, p.labels[?"app"] == pod.labels[?"app"])
  let urgent = topology("kubernetes.io/hostname").sum(p, p.priority / 10 - 1)
  require mine.here(node) - mine.least(1) < 9 else "${mine.here(node)} of ${mine.total()} in the zone"
  require urgent.least(1) + urgent.here(node) < 2 else "${urgent.least(1)} is the least"
  require mine.total() % 7 != node.podCount else "${mine.total()} in all"
  for t in pod.requiredAntiAffinity {
    require topology(t.topologyKey).count(p, t.matches(p)).here(node) < 2 else "near ${t.topologyKey}"
  }
  require cluster.requiredAntiAffinityTerms.count(t, t.matches(pod)).here(node) < 2 else "kept away"
}
predicate Whole {
  applies when pod.priority > 50 && pod.spreadConstraints.size() > 0
  require cluster.pods.size() % 3 != node.podCount % 3 else "${cluster.pods.size()} pods"
}
predicate Ports""",
).replace("Cpu Alike", "Counting Whole Cpu Alike")
"""Rules that count pods on other nodes, too."""


@cache
def shipped() -> RuleSet:
    checked = check_rules((shipped_rules(),)).rules
    assert checked is not None
    return checked


def mount(random: Random, pod: Json) -> None:
    """Let a pod use one of the claims."""
    name = f"claim-{random.randrange(CLAIMS)}"
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def relate(random: Random, pod: Json) -> None:
    """Give a pod required constraints and terms about pods of some apps."""
    rule = {"topologyKey": random.choice(["zone", "kubernetes.io/hostname"])}
    rule["labelSelector"] = {"matchLabels": {"app": random.choice(APPS)}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    match random.randrange(4):
        case 0:
            pod["spec"]["affinity"] = {"podAffinity": required}
        case 1:
            pod["spec"]["affinity"] = {"podAntiAffinity": required}
        case 2:
            spread = {"maxSkew": random.randrange(1, 3), "whenUnsatisfiable": "DoNotSchedule"}
            pod["spec"]["topologySpreadConstraints"] = [{**rule, **spread}]


def claim(number: int) -> Iterator[Json]:
    """Yield a claim that is bound to a volume of the driver `d`, and the volume, in a zone or anywhere."""
    zone = {"key": "zone", "operator": "In", "values": [*ZONES][number % 6 :][:1] or [*ZONES]}
    named = {"name": f"claim-{number}", "namespace": "d"}
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "s"}
    size = {"storage": "1Gi"}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**named, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {**spec, "volumeName": f"v{number}", "resources": {"requests": size}},
        "status": {"phase": "Bound"},
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"v{number}"},
        "spec": {
            **spec,
            "capacity": size,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
            "claimRef": named,
            "csi": {"driver": "d", "volumeHandle": f"{number}"},
        },
        "status": {"phase": "Bound"},
    }


def limit(random: Random, number: int) -> Json:
    """Return how many volumes of the driver `d` a node takes."""
    driver = {"name": "d", "nodeID": f"n{number}", "allocatable": {"count": random.randrange(1, 4)}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": f"n{number}"},
        "spec": {"drivers": [driver]},
    }


def decided(
    seed: int, checked: RuleSet, profile: str, has_claims: bool = True, are_related: bool = False
) -> list[Decision]:
    """Let pods of high priority preempt in a random full cluster, without evicting anything."""
    random = Random(seed)
    objects = [node(random, number) for number in range(NODES)]
    objects += [
        pod(random, f"p{number}-{at}", random.randrange(4) * 10, f"n{number}")
        for number in range(NODES)
        for at in range(random.randrange(3, 7))
    ]
    if has_claims:
        objects += [each for number in range(CLAIMS) for each in claim(number)]
        objects += [limit(random, number) for number in range(NODES)]
        for each in objects:
            if each["kind"] == "Pod" and random.random() < 0.6:
                mount(random, each)
    objects += [budget(random, number) for number in range(random.randrange(3))]
    pending = [pod(random, f"new-{number}", random.choice([15, 100, 100])) for number in range(PENDING)]
    for each in pending if has_claims else ():
        mount(random, each)
    for each in [*objects, *pending] if are_related else ():
        if each["kind"] == "Pod" and (random.random() < 0.1 or each in pending):
            relate(random, each)
    cluster = ClusterCache.of(objects_of(objects))
    settings = Settings(profile=profile, seed=seed, detail=Detail.FULL)
    with build_engine(checked, cluster, MemoryBinder(cluster), ManualClock(), settings) as engine:
        pods = [PodInfo.of(each) for each in objects_of(pending)]  # type: ignore[arg-type]
        return list(engine.decisions(pods))


@pytest.mark.parametrize("has_claims", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_kube_scheduler(seed: int, has_claims: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equal(lambda: decided(seed, shipped(), "kubernetes.v1_36.default", has_claims), monkeypatch)


@pytest.mark.parametrize("seed", range(4))
def test_own_rules(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equal(lambda: decided(seed, rules(RULES), "t.p"), monkeypatch)


@pytest.mark.parametrize("seed", range(5))
def test_pods_that_other_pods_keep_away(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equal(lambda: decided(seed, shipped(), "kubernetes.v1_36.default", False, True), monkeypatch)


@pytest.mark.parametrize("seed", range(4))
def test_own_rules_that_count_pods(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_equal(lambda: decided(seed, rules(COUNTING), "t.p", False, True), monkeypatch)


def assert_equal(run: Callable[[], list[Decision]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that dry runs on many nodes at once are made, and that decisions are the same without them."""
    calls: list[int] = []
    dry_run = preempt.Preemption._dry_run_all

    def counted(self: preempt.Preemption, rows: list[int]) -> Any:
        found = dry_run(self, rows)
        calls.append(len(found))
        return found

    monkeypatch.setattr(preempt.Preemption, "_dry_run_all", counted)
    together = run()
    assert max(calls) > 12 and any(decision.victims for decision in together)
    calls.clear()
    monkeypatch.setattr(preempt, "_MANY", NODES + 1)
    # No nominated pods are added to many nodes at once, either.
    monkeypatch.setattr(Judge, "_places_at_once", lambda judge, rows, places: places[:0])
    assert run() == together
    assert not calls


FAILING = """
predicate Few { require node.podCount < (pod.priority > 50 ? 2 : 9) else "${node.podCount} pods" }
predicate Whole { require node.pods.map(p, p.requests["cpu"].asInteger()).sum() >= 0 else "none" }
preemption Lower {
  victim when victim.priority < pod.priority
  choose by candidate.victims.size()
}
queue Q { order by pod.priority desc, pod.queuedAt }
profile p { scheduler "default-scheduler" queue Q predicates { Few Whole } preemption Lower }
"""


def test_dry_runs_do_not_change_the_order_of_later_faults() -> None:
    random = Random(1)
    objects = [node(random, number) for number in range(5)]
    running = [
        pod(random, f"p{number}-{at}", 20 * at, f"n{number}") for number in range(5) for at in range(2)
    ]
    for number, each in enumerate(running):
        # Not a whole number: the rule fails, on each node with another text.
        each["spec"]["containers"][0]["resources"]["requests"]["cpu"] = f"{1001 + number}m"

    def last_faults(*pending: Json) -> object:
        cluster = ClusterCache.of(objects_of([*objects, *running]))
        settings = Settings(profile="t.p")
        with build_engine(rules(FAILING), cluster, MemoryBinder(cluster), ManualClock(), settings) as engine:
            pods = [PodInfo.of(each) for each in objects_of(pending)]  # type: ignore[arg-type]
            return list(engine.decisions(pods))[-1].faults

    late = pod(Random(2), "late", 0)
    assert last_faults(pod(Random(3), "first", 100), late) == last_faults(late)


def test_volumes_are_asked_about_by_zone_and_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the nodes has the zone of the volume, which only the dry runs find out: room comes first."""
    random = Random(1)
    objects = [node(random, number) for number in range(300)]
    for number, each in enumerate(objects):
        each["metadata"]["labels"]["zone"] = f"zone-{number % 10}"
        each["spec"] = {}
        each["status"]["allocatable"] = {"cpu": "2", "memory": "1Gi", "pods": "9"}
    for number in range(300):
        for at in range(2):
            running = pod(random, f"p{number}-{at}", 0, f"n{number}")
            running["spec"] = {"containers": [{"name": "c", "image": "i:1"}], "nodeName": f"n{number}"}
            running["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
            objects.append(running)
    bound, volume = claim(0)
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    term["matchExpressions"] = [{"key": "zone", "operator": "In", "values": ["zone-3"]}]
    new = pod(random, "new", 100)
    new["spec"] = {"containers": running["spec"]["containers"], "priority": 100}
    new["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "claim-0"}}]
    calls: list[str] = []

    def count(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def counted(*given: Any) -> Any:
            calls.append(name)
            return original(*given)

        monkeypatch.setattr(owner, name, counted)

    count(preempt.Preemption, "_dry_run_all")
    count(preempt.Preemption, "_dry_run")
    count(VolumeNeeds, "on")
    cluster = ClusterCache.of(objects_of([*objects, bound, volume]))
    settings = Settings(profile="kubernetes.v1_36.default")
    with build_engine(shipped(), cluster, MemoryBinder(cluster), ManualClock(), settings) as engine:
        (waiting,) = [PodInfo.of(each) for each in objects_of([new])]  # type: ignore[arg-type]
        (decision,) = engine.decisions([waiting])
    found = cluster.snapshot().node(decision.nominated)
    assert found is not None and found.labels["zone"] == "zone-3" and len(decision.victims) == 1
    assert Counter(calls)["_dry_run"] == 0
    # 100 nodes are tried, then as many, and the last 100.
    assert Counter(calls)["_dry_run_all"] == 3
    # In each of these: all zones, and zone-3 again with the first and with the second victim put back.
    assert Counter(calls)["on"] <= 3 * (10 + 1 + 1)


def test_a_node_is_emptied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ClusterCache()
    cluster.add_node(NodeFacts("n"))
    pods = [PodInfo(name, node_name="n") for name in "abc"]
    for each in pods:
        cluster.add_pod(each)
    snapshot = cluster.snapshot()
    nodes, removed = ThinnedNodes(snapshot, snapshot.order, [pods]), list[str]()
    without_pod = NodeInfo.without_pod

    def noted(node: NodeInfo, gone: PodInfo) -> NodeInfo:
        removed.append(gone.name)
        return without_pod(node, gone)

    monkeypatch.setattr(NodeInfo, "without_pod", noted)
    row = int(snapshot.order[0])
    assert nodes.info(row).pods == ()
    nodes.absent[0, 1] = False
    assert nodes.info(row).pods == (pods[1],)
    assert removed == ["a", "b", "c"]
