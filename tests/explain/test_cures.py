"""Cures: the smallest change that makes a rule pass, found for any rule, and verified."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kdsl.app import Settings, check_rules, shipped_rules
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint
from kdsl.cycle.decision import Outcome
from kdsl.explain.changes import Operation, WhatIfChange
from kdsl.explain.cures import _closest, _fewest
from kdsl.explain.inspection import Inspection
from kdsl.explain.levers import Amount
from kdsl.explain.worlds import WorldChange
from kdsl.sim.run import explain
from kdsl.sim.what_if import changed
from kdsl.sim.workload import Workload

from tests.amounts import read_resources
from tests.explain.cases import case, cures, node, pod

ONE_PROFILE = Settings(profile="kubernetes.v1_36.default")
"""Other profiles would only cost time."""
AMOUNTS = ("requests", "scored_requests", "usage", "scored_usage")
FNS = 'fn sizeOf(labels: map(string, string)): int = int(labels[?"size"].orValue("0"))\n'


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("pod.priority >= 100", ["pod.priority=100"]),
        ("pod.priority > 100", ["pod.priority=101"]),
        ('pod.labels[?"team"].orValue("") == "ml"', ["pod.labels.team=ml"]),
        ('node.labels[?"team"].orValue("") == "ml"', ["node.n.labels.team=ml"]),
        ("sizeOf(node.labels) >= 10", ["node.n.labels.size=10"]),
        ('"zone" in node.labels', ["node.n.labels.zone=true"]),
        ("!node.unschedulable", ["node.n.unschedulable=false"]),
        ("node.taints.size() <= 1", ["node.n.taints-=b:NoSchedule"]),
        ('pod.requests["cpu"] <= quantity("300m")', ["pod.requests.cpu=300m"]),
        ("node.podCount < 2", ["pods-=default/low"]),
        (
            'node.requested["cpu"] <= quantity("2500m")',
            ["500m cpu freed on n", "pods-=default/low"],
        ),
        ('node.name == "m"', []),
    ],
)
def test_the_smallest_change(tmp_path: Path, condition: str, found: list[str]) -> None:
    rule = f'{FNS}predicate P {{\n  require {condition}\n    else "no"\n}}\n'
    taints = Taint("a", "", "NoSchedule"), Taint("b", "", "NoSchedule")
    cluster = [node("n", taints=taints, unschedulable=True)]
    high, low = (
        pod(name, cpu, node_name="n", priority=at) for name, cpu, at in (("high", "2", 9), ("low", "1", 0))
    )
    assert cures(case(tmp_path, rule, cluster, high, low, pod("p")).findings()).get("P", []) == found


def test_amounts_are_what_people_would_write(tmp_path: Path) -> None:
    """Bytes in whole Mi, counts in digits."""
    rules = "".join(
        f'predicate {name} {{\n  require pod.requests["{resource}"] <= node.allocatable["{resource}"] - node.requested["{resource}"]\n'
        '    else "no"\n}\n\n'
        for name, resource in (("Memory", "memory"), ("Small", "ephemeral-storage"), ("Vmem", "x.io/vmem"))
    )
    amounts = {"memory": "33500123456", "ephemeral-storage": "1001", "x.io/vmem": "10k"}
    old, new = (
        pod(name, **dict.fromkeys(AMOUNTS, read_resources(asked)), **on)
        for name, on, asked in (
            ("old", {"node_name": "n"}, {"memory": "3Gi", "ephemeral-storage": "1", "x.io/vmem": "3k"}),
            ("new", {}, {"memory": "30Gi", "ephemeral-storage": "1001", "x.io/vmem": "9k"}),
        )
    )
    assert cures(case(tmp_path, rules, [node("n", **amounts)], old, new).findings()) == {
        "Memory": [
            "pod.requests.memory=28876Mi",
            "1844Mi memory freed on n",
            "pods-=default/old",
            "node.n.allocatable.memory=33Gi",
        ],
        "Small": [
            "pod.requests.ephemeral-storage=1000",
            "1 ephemeral-storage freed on n",
            "pods-=default/old",
            "node.n.allocatable.ephemeral-storage=1002",
        ],
        "Vmem": [
            "pod.requests.x.io/vmem=7000",
            "2000 x.io/vmem freed on n",
            "pods-=default/old",
            "node.n.allocatable.x.io/vmem=12000",
        ],
    }


def test_a_node_that_takes_the_pod_needs_no_change(tmp_path: Path) -> None:
    rule = 'predicate P {\n  require node.name == "n"\n    else "no"\n}\n'
    where = case(tmp_path, rule, [node("n"), node("m")], pod("p"))
    asked = {name: where.findings(Inspection(name)) for name in "nm"}
    assert asked["n"].fits == asked["n"].cures == ()
    assert asked["n"].asked is not None and asked["n"].asked.rejected == ()
    assert asked["m"].asked is not None and asked["m"].asked.rejected


def test_what_is_needed_together(tmp_path: Path) -> None:
    rules = """predicate A {
  require pod.priority > 0 else "a"
}

predicate B {
  for t in node.taints {
    require pod.tolerates(t) else unresolvable "b"
  }
}
"""
    taints = Taint("a", "x", "NoSchedule"), Taint("b", "", "NoExecute")
    findings = case(tmp_path, rules, [node("n", taints=taints)], pod("p")).findings()
    both = "pod.tolerations+=a=x:NoSchedule and pod.tolerations+=b:NoExecute"
    assert cures(findings) == {
        "A": ["pod.priority=1"],
        "B": [both, "node.n.taints-=a=x:NoSchedule and node.n.taints-=b:NoExecute"],
    }
    assert len(findings.fits) == 2


@pytest.fixture(scope="module")
def shipped() -> RuleSet:
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None
    return checked.rules


NODES = st.builds(
    lambda cpu, zone, taint, cordoned: (cpu, zone, taint, cordoned),
    st.integers(1, 6),
    st.sampled_from("ab"),
    st.booleans(),
    st.booleans(),
)


@given(
    nodes=st.lists(NODES, min_size=1, max_size=4),
    used=st.lists(st.integers(1, 4), max_size=6),
    cpu=st.integers(1, 8),
    zone=st.sampled_from(["a", "b", "c", ""]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_fit_fits(
    shipped: RuleSet, nodes: list[tuple[int, str, bool, bool]], used: list[int], cpu: int, zone: str
) -> None:
    """Every proposed fit, tried with `--what-if`, places the pod on the named node."""
    facts = [
        node(f"n{at}", {"zone": zone_}, (Taint("t", "", "NoSchedule"),) * taint, cordoned, cpu=str(size))
        for at, (size, zone_, taint, cordoned) in enumerate(nodes)
    ]
    placed = [pod(f"p{at}", str(each), node_name=f"n{at % len(facts)}") for at, each in enumerate(used)]
    selector = FrozenMap({"zone": zone}) if zone else FrozenMap[str, str]()
    waiting = pod("w", str(cpu)).with_fields(node_selector=selector)
    workload = Workload(facts, placed, [waiting])
    explanation = explain(shipped, workload, ONE_PROFILE, waiting)
    findings = explanation.findings
    assert findings is not None
    assert (findings.passing > 0) is (explanation.decision.outcome is Outcome.PLACED)
    for fit in findings.fits:
        if all(isinstance(step, WhatIfChange) for step in fit.steps):
            changes = [step for step in fit.steps if isinstance(step, WhatIfChange)]
            assert _is_feasible(shipped, workload, waiting, changes, fit.node)


def _is_feasible(
    rules: RuleSet, workload: Workload, waiting: PodInfo, changes: list[WhatIfChange], where: str
) -> bool:
    supposed, other = changed(workload, waiting, changes)
    decision = explain(rules, supposed, ONE_PROFILE, other).decision
    return next(verdict.feasible for verdict in decision.verdicts if verdict.node == where)


@given(st.sets(st.integers(0, 11)), st.integers(0, 12))
def test_of_steps_those_are_left_that_are_needed(needed: set[int], count: int) -> None:
    """Whichever they are, and with few questions where few are needed."""
    steps, asked = tuple(WhatIfChange("pod", "labels", Operation.SET, str(at)) for at in range(count)), 0

    def passes(some: Sequence[WorldChange]) -> bool:
        nonlocal asked
        asked += 1
        return {steps[at] for at in needed if at < count} <= set(some) and not any(
            at >= count for at in needed
        )

    is_cured = count > 0 and all(at < count for at in needed)
    assert _fewest(steps, passes) == (tuple(steps[at] for at in sorted(needed)) if is_cured else ())
    assert asked <= 2 + 2 * count + 4 * len(needed)


@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.integers(-50, 50), st.integers(-60, 60)), min_size=1, max_size=3
    )
)
def test_amounts_are_as_close_to_what_they_are_now_as_will_do(amounts: list[tuple[int, int, int]]) -> None:
    """Each helps the more the closer it is to `least`, and does from `limit` on."""

    def amount(at: int, least: int, most: int) -> Amount:
        return Amount(
            lambda value: WhatIfChange("pod", "labels", Operation.SET, str(at), str(value)), least, most
        )

    def passes(steps: Sequence[WorldChange]) -> bool:
        chosen = {step.key: int(step.value) for step in steps if isinstance(step, WhatIfChange)}
        return all(
            _helps(least, most, limit, chosen.get(str(at), most))
            for at, (least, most, limit) in enumerate(amounts)
        )

    found = _closest(tuple(amount(at, least, most) for at, (least, most, _) in enumerate(amounts)), passes)
    expected = {}
    for at, (least, most, limit) in enumerate(amounts):
        if not _helps(least, most, limit, least):
            assert found == ()
            return
        towards = range(most, least - 1, -1) if least <= most else range(most, least + 1)
        best = next(value for value in towards if _helps(least, most, limit, value))
        if best != most:
            expected[str(at)] = str(best)
    assert {step.key: step.value for step in found if isinstance(step, WhatIfChange)} == expected


def _helps(least: int, most: int, limit: int, value: int) -> bool:
    return value <= limit if least <= most else value >= limit
