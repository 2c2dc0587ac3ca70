"""What would make a rule pass: the smallest change, found for any rule, and true."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kdsl.app import Settings, check_rules, shipped_rules
from kdsl.check.model import RuleSet
from kdsl.cluster.frozen_map import FrozenMap
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.taints import Taint
from kdsl.cycle.decision import Outcome
from kdsl.explain.changes import Change
from kdsl.sim.run import explain
from kdsl.sim.what_if import changed
from kdsl.sim.workload import Workload

from tests.explain.cases import case, cures, node, pod

ONE_PROFILE = Settings(profile="kubernetes.v1_36.default")
"""Other profiles would only cost time."""
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
    """What can be tried with `--what-if` places the pod on the node that was named."""
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
        if all(isinstance(step, Change) for step in fit.steps):
            changes = [step for step in fit.steps if isinstance(step, Change)]
            assert _is_feasible(shipped, workload, waiting, changes, fit.node)


def _is_feasible(
    rules: RuleSet, workload: Workload, waiting: PodInfo, changes: list[Change], where: str
) -> bool:
    supposed, other = changed(workload, waiting, changes)
    decision = explain(rules, supposed, ONE_PROFILE, other).decision
    return next(verdict.feasible for verdict in decision.verdicts if verdict.node == where)
