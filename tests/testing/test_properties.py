"""Properties: false ones are found to be false, true ones are proven, and what was not tried is unproven."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from kdsl.explain.patience import Patience
from kdsl.report.diagnostics import render
from kdsl.testing.render import results_document, results_junit, results_text
from kdsl.testing.running import CaseOutcome, CaseResult, Runner
from kdsl.testing.search import SECONDS
from kdsl.testing.suite import read_suite, run_suite

from tests.cli.command_line import kdsl
from tests.report.junit_reader import read_junit

ROOT = Path(__file__).parent.parent.parent
NIMBUS = (ROOT / "examples" / "new-vendor" / "nimbus.kdsl").read_text(encoding="utf-8")

RULES = """kdsl 1
package a
import kubernetes.v1_36
score Nothing {{ value 0 }}
predicate Rule {{ {statements} }}
profile lax {{
  scheduler "lax" queue v1_36.PrioritySort
  predicates {{ v1_36.TaintToleration v1_36.NodePorts v1_36.NodeResourcesFit }}
  scores {{ Nothing weight 1 }}
}}
profile strict extends lax {{ scheduler "strict" add predicate Rule }}
profile easy extends v1_36.default {{ scheduler "easy" }}
profile hard extends v1_36.default {{ scheduler "hard" add predicate Rule before NodeName }}
"""


def _run(tmp_path: Path, statements: str, holds: str, more: str = "", seed: int = 0) -> CaseResult:
    (tmp_path / "a.kdsl").write_text(RULES.format(statements=statements))
    (tmp_path / "a.test.yaml").write_text(
        f"apiVersion: kdsl.dev/v1\nkind: RuleTest\nprofile: strict\n{more}\n"
        f"tests: [{{property: p, forall: {{pods: 30, nodes: 5}}, holds: {holds}}}]\n"
    )
    suite = read_suite([tmp_path / "a.test.yaml"])
    assert not suite.diagnostics, render(suite.diagnostics)
    (result,) = run_suite(suite, seed)
    return result


FALSE = {
    "label": 'require pod.labels[?"tier"].orValue("") != "gold"',
    "label key": 'require !("example.com/hold" in pod.labels)',
    "label through a name": 'let tier = pod.labels[?"tier"].orValue("x") require tier.lowerAscii() != "gold"',
    "annotation": 'require pod.annotations[?"team/review"].orValue("ok") == "ok"',
    "namespace prefix": 'require !pod.namespace.startsWith("ml-")',
    "namespace list": 'require !(pod.namespace in ["shop", "checkout"])',
    "namespace labels": 'require pod.namespaceLabels[?"tenant"].orValue("") != "guest"',
    "service account": 'require pod.serviceAccount != "builder"',
    "threshold": "require pod.priority != 4711",
    "one below the threshold": "require pod.priority != 4710 || pod.priority > 4711",
    "number in a label": 'require int(node.labels[?"gen"].orValue("0")) <= 8',
    "quantity": 'require pod.requests["memory"] != quantity("12345Mi")',
    "duration": 'require duration(pod.annotations[?"ttl"].orValue("1s")) < duration("90s")',
    "time": 'require pod.createdAt < timestamp("2031-05-06T07:08:09Z")',
    "suffix": 'require !pod.labels[?"app"].orValue("").endsWith("-canary")',
    "pattern": 'require !pod.labels[?"v"].orValue("").matches("^v[0-9]+rc[0-9]$")',
    "toleration": 'require !pod.tolerations.exists(t, t.key == "repair" && t.effect == "NoExecute")',
    "taint": 'require !node.taints.exists(t, t.key == "old" && t.effect == "PreferNoSchedule")',
    "three at once": 'require !(pod.priority >= 5000 && pod.namespace == "batch" && "team" in pod.labels)',
    "image": 'require pod.images.all(i, !i.startsWith("evil.example/"))',
    "port": "require !pod.hostPorts.exists(p, p.port == 9100)",
    "spread": 'require !pod.spreadConstraints.exists(c, c.topologyKey == "example.com/rack")',
    "affinity": 'require !pod.requiredAntiAffinity.exists(t, t.topologyKey == "example.com/room")',
    "pods on the node": "require node.podCount < 7",
    "labels of running pods": 'require !node.pods.exists(p, p.labels[?"noisy"].orValue("") == "yes")',
    "number of containers": "require pod.containers.size() <= 4",
    "privileged": "require !pod.containers.exists(c, c.privileged)",
    "node name": 'require node.name != "edge-7"',
    "condition": 'require !node.conditions.exists(c, c.type == "DiskPressure" && c.status == "True")',
    "owner": 'require !pod.ownerReferences.exists(o, o.kind == "DaemonSet")',
    "extended resource": 'require pod.requests["example.com/gpu"] <= quantity("3")',
    "claim": 'require !cluster.claims(pod).exists(c, c.storageClassName == "slow")',
    "number of nodes": "require cluster.nodeCount != 3",
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_property_is_found_false(tmp_path: Path, name: str) -> None:
    result = _run(tmp_path, f'{FALSE[name]} else "no"', "feasible(lax) subsetOf feasible(strict)")
    assert result.outcome is CaseOutcome.FAILED, results_text([result])
    assert "is feasible under `a.lax`, and not under `a.strict`" in result.mismatches[0].actual


@pytest.mark.parametrize("name", ["label", "three at once", "taint"])
def test_the_rules_of_kubernetes_hide_nothing(tmp_path: Path, name: str) -> None:
    result = _run(tmp_path, f'{FALSE[name]} else "no"', "feasible(easy) subsetOf feasible(hard)")
    assert result.outcome is CaseOutcome.FAILED, results_text([result])


def test_a_false_property_of_cards_is_found_false(tmp_path: Path) -> None:
    (tmp_path / "nimbus.kdsl").write_text(NIMBUS)
    careful = NIMBUS.replace("package nimbus", "package careful")
    careful = careful.replace("require device.healthy", "require device.healthy && device.memory < 16000")
    assert "16000" in careful
    (tmp_path / "careful.kdsl").write_text(careful)
    (tmp_path / "a.kdsl").write_text(
        "kdsl 1\npackage a\nimport kubernetes.v1_36\nimport nimbus\nimport careful\n"
        'profile lax extends v1_36.default { scheduler "lax" devices nimbus.Npu }\n'
        'profile strict extends v1_36.default { scheduler "strict" devices careful.Npu }\n'
    )
    (tmp_path / "a.test.yaml").write_text(
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\nprofile: strict\n"
        "tests: [{property: p, forall: {pods: 30, nodes: 5}, holds: feasible(lax) subsetOf feasible(strict)}]\n"
    )
    suite = read_suite([tmp_path / "a.test.yaml"])
    assert not suite.diagnostics, render(suite.diagnostics)
    (result,) = run_suite(suite)
    assert result.outcome is CaseOutcome.FAILED, results_text([result])
    assert "nimbus.example/cards" in results_text([result])


TRUE = {
    "label": FALSE["label"],
    "three at once": FALSE["three at once"],
    "number in a label": 'require int(node.labels[?"gen"].orValue("0")) >= 8 && !node.unschedulable',
    "taint": 'for t in node.taints where t.key == "gpu" { require pod.tolerates(t) else "t" } require true',
    "applies": 'applies when pod.namespace.startsWith("ml-") && pod.priority > 100 require node.podCount < 3',
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_property_is_proven(tmp_path: Path, name: str) -> None:
    result = _run(tmp_path, f'{TRUE[name]} else "no"', "feasible(strict) subsetOf feasible(lax)")
    assert result.outcome is CaseOutcome.PASSED, results_text([result])
    assert result.proof is not None and result.proof.conditions
    assert all(each.true and each.false for each in result.proof.conditions)


HIDDEN = 'require pod.annotations[?"a"].orValue("x").replace("q", "z").split("z").size() < 30 else "no"'


def test_a_property_whose_conditions_were_not_met_is_unproven(tmp_path: Path) -> None:
    result = _run(tmp_path, HIDDEN, "feasible(strict) subsetOf feasible(lax)")
    assert result.outcome is CaseOutcome.UNPROVEN and not result.passed
    text = results_text([result])
    place = f"{tmp_path}/a.kdsl:5:26"
    assert "  open  p\n" in text and "never false (true " in text and place in text
    assert "help: add nodes, pods or objects to the fixtures that make it so" in text
    assert "0 passed, 1 unproven in 1 file" in text
    document = results_document([result], 0)
    assert (document["passed"], document["failed"], document["unproven"]) == (0, 0, 1)
    (case,) = json.loads(json.dumps(document))["cases"]
    assert case["outcome"] == "unproven" and not case["passed"]
    (condition,) = case["proof"]["conditions"]
    assert (condition["line"], condition["column"], condition["false"]) == (5, 26, 0)
    junit = read_junit(results_junit([result]))
    assert junit.find("./testsuite/testcase/failure[@type='unproven']") is not None
    shown = kdsl("test", str(tmp_path))
    assert shown.exit_code == 1 and "1 unproven" in shown.stdout


def test_unproven_is_allowed_with_a_reason(tmp_path: Path) -> None:
    holds = 'feasible(strict) subsetOf feasible(lax), unproven: "thirty is never reached"'
    result = _run(tmp_path, HIDDEN, holds)
    assert result.outcome is CaseOutcome.UNPROVEN and result.passed
    text = results_text([result])
    assert "allowed: thirty is never reached" in text and "1 unproven (1 allowed)" in text
    junit = read_junit(results_junit([result]))
    skipped = junit.find("./testsuite/testcase/skipped")
    assert skipped is not None and skipped.get("message") == "thirty is never reached"
    assert kdsl("test", str(tmp_path)).exit_code == 0


def test_a_fixture_proves_what_nobody_could_guess(tmp_path: Path) -> None:
    fixtures = "fixtures: {nodes: {n: {}}, pods: {p: {annotations: {a: %s}}}}" % ("z" * 40)
    result = _run(tmp_path, HIDDEN, "feasible(strict) subsetOf feasible(lax)", fixtures)
    assert result.outcome is CaseOutcome.PASSED, results_text([result])


def test_a_counterexample_can_be_pasted(tmp_path: Path) -> None:
    """A failure prints the fixtures of a case that shows it."""
    statements = f'{FALSE["affinity"]} else "no"'
    failed = _run(tmp_path, statements, "feasible(lax) subsetOf feasible(strict)")
    lines = [line.removeprefix("  ") for line in failed.mismatches[0].trace[1:]]
    path = tmp_path / "b.test.yaml"
    head = "apiVersion: kdsl.dev/v1\nkind: RuleTest\nprofile: strict\n"
    case = "tests: [{name: c, pod: pod, expect: {feasible: []}}]\n"
    path.write_text(head + "\n".join(lines) + "\n" + case)
    suite = read_suite([path])
    assert not suite.diagnostics, render(suite.diagnostics)
    (result,) = run_suite(suite)
    assert result.passed, results_text([result])


def test_conditions_that_parameters_settle_need_no_case(tmp_path: Path) -> None:
    statements = (
        'param off = false param names: list(string) = [] require !off || pod.priority > 3 else "a" '
        'require names.size() == 0 || pod.name in names else "b" require pod.priority < 7 else "c"'
    )
    result = _run(tmp_path, statements, "feasible(strict) subsetOf feasible(lax)")
    assert result.outcome is CaseOutcome.PASSED, results_text([result])
    assert result.proof is not None
    assert [each.text for each in result.proof.conditions] == ["pod.priority < 7"]


def test_equal_seeds_give_equal_searches(tmp_path: Path) -> None:
    statements = f'{FALSE["three at once"]} else "no"'
    runs = [_run(tmp_path, statements, "feasible(lax) subsetOf feasible(strict)", seed=3) for _ in range(2)]
    assert results_text([runs[0]]) == results_text([runs[1]])
    assert runs[0].proof is not None and runs[1].proof is not None
    assert runs[0].proof.tried == runs[1].proof.tried


@pytest.mark.parametrize(("seconds", "most"), [(3, 25), (100, 1)])
def test_a_law_is_not_tried_for_ever(tmp_path: Path, seconds: int, most: int) -> None:
    """Between two looks at the watch so many seconds go by: a minute is soon over."""
    statements = f'{FALSE["label"]} || true else "no"'
    assert _run(tmp_path, statements, "feasible(lax) subsetOf feasible(strict)").proof is not None
    suite = read_suite([tmp_path / "a.test.yaml"])
    (test,) = suite.tests
    runner = Runner(begin=lambda: Patience(count(step=seconds * 10**9).__next__, SECONDS))
    result = runner.run(test, test.cases[0])
    assert result.outcome is CaseOutcome.UNPROVEN and not result.passed
    assert result.proof is not None and result.proof.unfinished and 0 <= result.proof.tried <= most
    assert f"unproven: given up after {SECONDS} s and " in results_text([result])
    assert results_document([result], 0)["cases"][0]["proof"]["unfinished"] is True  # type: ignore[index,call-overload]


def test_a_counterexample_is_told_though_there_is_no_time_to_make_it_small(tmp_path: Path) -> None:
    watch = Patience(iter([0, *[0] * 5, *[10**18] * 10**6]).__next__)
    statements = 'require false else "no"'
    _run(tmp_path, statements, "feasible(lax) subsetOf feasible(strict)")
    (test,) = read_suite([tmp_path / "a.test.yaml"]).tests
    result = Runner(begin=lambda: watch).run(test, test.cases[0])
    assert result.outcome is CaseOutcome.FAILED
