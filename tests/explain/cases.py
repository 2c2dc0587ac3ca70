"""Small clusters and rules of users, to be explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kdsl.app import Settings, check_rules
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.views.view import load_views
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint
from kdsl.explain.explanation import Explanation
from kdsl.explain.findings import Findings
from kdsl.explain.inspection import Inspection
from kdsl.report.atoms import AtomPrinter, step_text
from kdsl.report.values import ValuePrinter
from kdsl.sim.run import explain
from kdsl.sim.workload import Workload

from tests.amounts import read_resources

PLAIN = Inspection()
PRINTER = AtomPrinter(ValuePrinter(load_views()))


def node(
    name: str,
    labels: Mapping[str, str] = {},
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    **resources: str,
) -> NodeFacts:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110", **resources}
    return NodeFacts(
        name,
        labels=FrozenMap(dict(labels)),
        taints=taints,
        unschedulable=unschedulable,
        allocatable=read_resources(amounts),
    )


def pod(
    name: str,
    cpu: str = "1",
    labels: Mapping[str, str] = {},
    **fields: object,
) -> PodInfo:
    requests = read_resources({"cpu": cpu})
    amounts = dict.fromkeys(("requests", "scored_requests", "usage", "scored_usage"), requests)
    given: dict[str, object] = {**amounts, **fields}
    return PodInfo(name, labels=FrozenMap(dict(labels)), **given)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Case:
    """Rules with one profile, over a cluster on which one pod waits."""

    rules: RuleSet
    workload: Workload

    def explain(self, inspection: Inspection = PLAIN) -> Explanation:
        return explain(self.rules, self.workload, Settings(), self.workload.pending[0], inspection)

    def findings(self, inspection: Inspection = PLAIN) -> Findings:
        findings = self.explain(inspection).findings
        assert findings is not None
        return findings


def case(folder: Path, predicates: str, nodes: list[NodeFacts], *pods: PodInfo) -> Case:
    """Return a case; the first of `pods` without a node is the one to explain."""
    names = [line.split()[1] for line in predicates.splitlines() if line.startswith("predicate ")]
    text = "kdsl 1\npackage t\n\nqueue Q {\n  order by pod.queuedAt\n}\n" + predicates
    text += f'\nprofile p {{\n  scheduler "default-scheduler"\n  queue Q\n  predicates {{ {" ".join(names)} }}\n}}\n'
    (folder / "t.kdsl").write_text(text, encoding="utf-8")
    checked = check_rules((folder,))
    assert checked.rules is not None, checked.diagnostics
    placed = [each for each in pods if each.node_name]
    return Case(checked.rules, Workload(nodes, placed, [each for each in pods if not each.node_name]))


def decided(findings: Findings) -> dict[str, dict[str, list[str]]]:
    """Return the atoms that decided as text, by node and rule."""
    return {
        judged.node: {
            each.rule: [PRINTER.text(atom) for failed in each.failed for atom in failed.atoms]
            for each in judged.rejected
        }
        for judged in findings.nodes
    }


def cures(findings: Findings) -> dict[str, list[str]]:
    """Return the cures of each rule as text."""
    found: dict[str, list[str]] = {}
    for cure in findings.cures:
        found.setdefault(cure.rule, []).append(" and ".join(map(step_text, cure.steps)))
    return found
