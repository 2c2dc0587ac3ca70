"""Test files that are broken, and those whose cases fail: what is said about them, text for text.

`UPDATE_GOLDEN=1 pytest tests/testing/test_files.py` writes the expected texts anew.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl.report.diagnostics import render
from kdsl.testing.codes import TestCode
from kdsl.testing.coverage import coverage_text
from kdsl.testing.discovery import find_test_files
from kdsl.testing.manifest import NODE_EDITS, POD_EDITS
from kdsl.testing.mutants import mutants_of
from kdsl.testing.render import results_document, results_junit, results_text
from kdsl.testing.shape import schema
from kdsl.testing.suite import Suite, coverage_of, files_under_test, read_suite, run_suite

from tests.report.junit_reader import read_junit

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BROKEN = sorted((HERE / "broken").glob("*.yaml"))
FAILING = sorted((HERE / "failing").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def _golden(path: Path, text: str) -> None:
    """Compare with the golden text, in which the lines of shipped rules are left out."""
    text = re.sub(r"(rules/(?:kubernetes|devices)/\w+\.kdsl):\d+", r"\1:LINE", text)
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def _suite(tmp_path: Path, body: str) -> Suite:
    path = tmp_path / "a.test.yaml"
    path.write_text(f"apiVersion: kdsl.dev/v1\nkind: RuleTest\nrules: [{HERE / 'rules'}]\n{body}")
    return read_suite([path])


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_broken(path: Path) -> None:
    suite = read_suite([path.relative_to(ROOT)])
    assert suite.is_broken and not suite.tests
    _golden(path, render(suite.diagnostics) + "\n")


@pytest.mark.parametrize("path", FAILING, ids=lambda path: path.stem)
def test_failing(path: Path) -> None:
    suite = read_suite([path.relative_to(ROOT)])
    assert not suite.diagnostics
    results = run_suite(suite)
    assert not any(result.passed for result in results)
    _golden(path, results_text(results) + "\n")
    document = results_document(results, 0)
    assert document["failed"] == len(results) and json.dumps(document)
    xml = read_junit(results_junit(results))
    assert len(xml.findall("./testsuite/testcase/failure")) == len(results)


def test_a_fixture_like_nothing_is_not_told_of_itself(tmp_path: Path) -> None:
    body = "profile: small\nfixtures: {nodes: {aaa: {}, bbb: {like: ccc}, ddd: {like: bbb}, eee: {}}}\n"
    diagnostics = _suite(tmp_path, f"{body}tests: []\n").diagnostics
    (found,) = [each for each in diagnostics if each.code == TestCode.UNKNOWN_FIXTURE]
    assert found.help == ("nodes here: aaa, ddd, eee",)


def test_every_code_is_documented_and_shown() -> None:
    """Each code stands in the guide, and in a golden file or in a test of this folder."""
    guide = (ROOT / "docs" / "test-rules.md").read_text(encoding="utf-8")
    shown = "".join(path.read_text(encoding="utf-8") for path in (HERE / "broken").glob("*.txt"))
    tests = Path(__file__).read_text(encoding="utf-8")
    for code in TestCode:
        assert f"| {code} |" in guide, code
        assert f"[{code}]" in shown or f"TestCode.{code.name}" in tests, code


def test_the_schema_is_one_and_knows_every_key() -> None:
    Draft202012Validator.check_schema(schema())
    definitions = schema()["$defs"]
    assert set(definitions["node"]["properties"]) == {*NODE_EDITS, "like"}
    assert set(definitions["pod"]["properties"]) == {*POD_EDITS, "like", "on", "count"}


def test_the_design_s_sample_passes(tmp_path: Path) -> None:
    suite = _suite(
        tmp_path,
        """
profile: small.small
fixtures:
  nodes:
    big: {cpu: "32", memory: 128Gi, allocatable: {nvidia.com/gpu: "8"}, labels: {gpu.memory: "81920"}}
    small: {like: big, cpu: "4", labels: {gpu.memory: "16384"}}
    cordoned: {like: big, unschedulable: true}
  pods:
    train: {namespace: ml-a, requests: {cpu: "2", nvidia.com/gpu: "1"}, labels: {app: train}}
    urgent: {like: train}
    noise: {like: train, on: big, count: 3}
tests:
- name: small cards and cordons are out
  pod: train
  nodes: [big, small, cordoned]
  expect:
    feasible: [big]
    rejected:
      small: {by: Cards, code: unresolvable, reason: node(s) had cards smaller than 40 GB}
      cordoned: {by: NodeUnschedulable, code: unresolvable}
- name: spot is last
  pod: train
  matrix: {nodes.big.labels.capacity: [spot, on-demand]}
  expect: {scores: {big: {Spot: [0, 100]}}, picks: big}
- {name: either, pod: train, matrix: {nodes.cordoned.unschedulable: [false]}, expect: {placed: true}}
- name: queue
  queue: [train@t=0 priority 0, urgent@t=5 priority 10]
  expect: {order: [urgent, train]}
- property: tightening never frees a node
  forall: {pods: 50, nodes: 10}
  holds: feasible(small) subsetOf feasible(default)
""",
    )
    assert not suite.diagnostics
    # With another seed, the search may not come upon a pod that tolerates a cordon and asks for cards.
    results = run_suite(suite, seed=1)
    assert all(result.passed for result in results), results_text(results)
    assert [result.case.name for result in results][1:4] == [
        "spot is last [capacity=spot]",
        "spot is last [capacity=on-demand]",
        "either [unschedulable=false]",
    ]


def test_bound_pods_count(tmp_path: Path) -> None:
    body = """
profile: small
fixtures:
  nodes: {node: {cpu: "4"}}
  pods:
    web: {cpu: "2"}
    noise: {cpu: "1", on: node, count: %d}
tests:
- {name: fits, pod: web, expect: {placed: true}}
"""
    assert run_suite(_suite(tmp_path, body % 2))[0].passed
    assert not run_suite(_suite(tmp_path, body % 3))[0].passed


def test_manifests_are_fixtures(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "nodes.json").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [
                    {
                        "apiVersion": "v1",
                        "kind": "Node",
                        "metadata": {"name": "real", "labels": {"zone": "a"}},
                        "status": {"allocatable": {"cpu": "2", "pods": "10"}},
                    }
                ],
            }
        )
    )
    (tmp_path / "pods" / "web.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
        "spec: {nodeSelector: {zone: a}, containers: [{name: c, resources: {requests: {cpu: '1'}}}]}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: busy}\n"
        "spec: {nodeName: real, containers: [{name: c, resources: {requests: {cpu: '1'}}}]}\n"
    )
    suite = _suite(
        tmp_path,
        """
profile: small
fixtures:
  from: [nodes.json, "pods/*.yaml"]
  nodes: {elsewhere: {like: real, labels: {zone: b}}}
  pods: {larger: {like: web, cpu: "2"}}
tests:
- {name: real, pod: web, expect: {feasible: [real], rejected: {elsewhere: {by: NodeAffinity}}}}
- {name: real usage, pod: larger, expect: {rejected: {real: {by: NodeResourcesFit, code: unschedulable}}}}
""",
    )
    assert not suite.diagnostics, render(suite.diagnostics)
    assert all(result.passed for result in run_suite(suite))


def test_rules_beside_a_test_are_those_it_tests(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text(
        'kdsl 1\npackage beside\npredicate P { require node.podCount < 1 else "no" }\n'
    )
    path = tmp_path / "a_test.yaml"
    path.write_text(
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: P\nfixtures: {nodes: {n: {}}, pods: {p: {}, q: {on: n}}}\n"
        "tests: [{name: full, pod: p, expect: {rejected: {n: {by: P, reason: 'no'}}}}]\n"
    )
    suite = read_suite([tmp_path])
    assert not suite.diagnostics, render(suite.diagnostics)
    assert run_suite(suite)[0].passed


def test_seeds_give_the_same_counterexample(tmp_path: Path) -> None:
    suite = read_suite([HERE / "failing" / "property.yaml"])
    assert results_text(run_suite(suite, 7)) == results_text(run_suite(suite, 7))
    assert "--seed 7" in results_text(run_suite(suite, 7))


def test_a_law_that_nothing_tries_fails(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text(
        'kdsl 1\npackage never\npredicate Never { require false else "never" }\n'
    )
    path = tmp_path / "a.test.yaml"
    path.write_text(
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: Never\n"
        "tests: [{property: p, forall: {pods: 3, nodes: 2}, holds: order independent}]\n"
    )
    (result,) = run_suite(read_suite([path]))
    assert "nothing was tested" in result.mismatches[0].actual


def test_no_tests_and_no_files(tmp_path: Path) -> None:
    assert [each.code for each in read_suite([tmp_path]).diagnostics] == [TestCode.NO_TESTS]
    assert [each.code for each in read_suite([tmp_path / "x"]).diagnostics] == [TestCode.UNREADABLE]
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.test.yaml").write_text("")
    (tmp_path / "b_test.yaml").write_text("")
    found = find_test_files([tmp_path], [])
    assert [file.path.name for file in found] == ["b_test.yaml"]


def test_broken_rules_are_reported_once(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage a\npredicate {\n")
    for name in "xy":
        (tmp_path / f"{name}.test.yaml").write_text(
            "apiVersion: kdsl.dev/v1\nkind: RuleTest\nprofile: p\ntests: [{property: p, holds: deterministic}]\n"
        )
    suite = read_suite([tmp_path])
    assert suite.is_broken
    spans = [str(each.span) for each in suite.diagnostics]
    assert len(spans) == len(set(spans))


def test_an_error_in_a_package_that_the_tested_rule_does_not_import_is_an_error(tmp_path: Path) -> None:
    rule = 'require !node.unschedulable else "no"'
    (tmp_path / "a.kdsl").write_text(f"kdsl 1\npackage a\npredicate P {{ {rule} }}\n")
    (tmp_path / "b.kdsl").write_text("kdsl 1\npackage b\nscore S { value pod.cores }\n")
    test = tmp_path / "p.test.yaml"
    cases = "tests: [{name: one, pod: p, nodes: [n], expect: {feasible: [n]}}]"
    fixtures = "fixtures: {nodes: {n: {cpu: 1}}, pods: {p: {}}}"
    test.write_text(f"apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: P\n{fixtures}\n{cases}\n")
    suite = read_suite([tmp_path])
    assert suite.is_broken and not suite.tests
    assert [each.title for each in suite.diagnostics if each.is_error] == ["`pod` has no field `cores`"]
    (tmp_path / "b.kdsl").write_text("kdsl 1\npackage b\nscore S { value 1 }\n")
    [result] = run_suite(read_suite([tmp_path]))
    assert result.passed


def test_coverage_sees_each_outcome(tmp_path: Path) -> None:
    body = """
predicate: Cards
fixtures:
  nodes:
    big: {labels: {gpu.memory: "81920"}}
    small: {labels: {gpu.memory: "1"}}
  pods:
    plain: {}
    gpu: {requests: {nvidia.com/gpu: "1"}}
tests:
- {name: a, pod: gpu, nodes: [big], expect: {feasible: [big]}}
"""
    suite = _suite(tmp_path, body)
    coverage = coverage_of(suite)
    run_suite(suite, probe=coverage)
    text = re.sub(r"\S*/small\.kdsl", "small.kdsl", coverage_text(coverage))
    assert "  4/8  predicate Cards" in text
    assert "never false  applies when  small.kdsl:6:16" in text
    assert "never false  operand  small.kdsl:7:11" in text
    assert "  0/2  predicate Unused" in text and "  0/3  score Spot" in text
    more = _suite(
        tmp_path,
        body + "- {name: b, pod: gpu, nodes: [small], expect: {feasible: []}}\n"
        "- {name: c, pod: plain, nodes: [small], expect: {feasible: [small]}}\n",
    )
    better = coverage_of(more)
    run_suite(more, probe=better)
    assert "  7/8  predicate Cards" in coverage_text(better)
    assert "!node.unschedulable" in coverage_text(better)


PREEMPTION = """kdsl 1
package room
import kubernetes.v1_36
queue Q { order by pod.priority desc, pod.queuedAt }
score Nothing { value 0 }
preemption Room {
  eligible when pod.preemptionPolicy != "Never" else "not eligible"
  victim when victim.priority < pod.priority && victim.namespace != "kube-system"
  order by victim.priority desc
  choose by candidate.victims.size()
}
profile room {
  scheduler "room" queue Q
  preemption Room
  predicates { v1_36.NodeResourcesFit }
  scores { Nothing weight 1 }
}
"""


def test_coverage_and_mutants_look_at_how_room_is_made(tmp_path: Path) -> None:
    (tmp_path / "room.kdsl").write_text(PREEMPTION)
    path = tmp_path / "a.test.yaml"
    path.write_text(
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\nprofile: room\n"
        "fixtures:\n  nodes: {n: {cpu: '2'}}\n  pods:\n"
        "    low: {cpu: '2', on: n}\n    high: {cpu: '1', priority: 3}\n"
        "tests:\n- name: room\n  pod: high\n"
        "  expect: {message: '0/1 nodes are available: 1 Insufficient cpu.'}\n"
    )
    suite = read_suite([path])
    assert not suite.diagnostics, render(suite.diagnostics)
    coverage = coverage_of(suite)
    run_suite(suite, probe=coverage)
    text = coverage_text(coverage)
    assert "preemption Room" in text
    for line in (
        f'never false  eligible when  {tmp_path}/room.kdsl:7:17  pod.preemptionPolicy != "Never"',
        f"never false  operand  {tmp_path}/room.kdsl:8:15  victim.priority < pod.priority",
    ):
        assert line in text
    assert "never true  victim when" not in text and "choose by" not in text
    made = {(mutant.span.line, mutant.what) for mutant in mutants_of(files_under_test(suite))}
    assert {(7, "dropped"), (7, "negated"), (8, "negated"), (9, "order reversed")} <= made


def test_cards_need_devices_and_containers(tmp_path: Path) -> None:
    case = "tests:\n- {name: a, pod: p, expect: {cards: {side: [x]}}}\n"
    fixtures = "fixtures: {nodes: {n: {}}, pods: {p: {limits: {nvidia.com/gpu: 1}}}}\n"
    alone = _suite(tmp_path, "predicate: Cards\n" + fixtures + case)
    assert [each.title for each in alone.diagnostics] == [
        "the subject of the test shares no devices, so no pod gets cards"
    ]
    path = tmp_path / "b.test.yaml"
    head = f"apiVersion: kdsl.dev/v1\nkind: RuleTest\nrules: [{ROOT / 'rules'}]\n"
    path.write_text(head + "device: devices.nvidia.Nvidia\n" + fixtures + case)
    (wrong,) = read_suite([path]).diagnostics
    assert wrong.title == "there is no container `side` in this case"
    assert wrong.help == ("containers here: main",)


def test_a_fixture_with_a_warning_leaves_no_unknown_name_unsaid(tmp_path: Path) -> None:
    node = "{apiVersion: v1, kind: Node, metadata: {name: n}, spec: {podCIDRz: x}}"
    (tmp_path / "c.yaml").write_text(f"{node}\n")
    body = (
        "predicate: Cards\nfixtures: {from: [c.yaml]}\ntests: [{name: t, pod: d/p, expect: {feasible: []}}]\n"
    )
    suite = _suite(tmp_path, body)
    assert suite.is_broken
    assert [each.code for each in suite.diagnostics] == [TestCode.BAD_FIXTURE, TestCode.UNKNOWN_FIXTURE]


def test_a_fixture_like_another_is_created_at_the_same_time(tmp_path: Path) -> None:
    rule = 'predicate New {\n  require pod.createdAt > timestamp("2026-01-01T00:00:00Z") else "old"\n}\n'
    (tmp_path / "new.kdsl").write_text(f"kdsl 1\npackage new\n{rule}")
    (tmp_path / "new.test.yaml").write_text(
        "apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: New\nfixtures:\n  nodes: {n: {}}\n  pods:\n"
        '    first: {metadata: {creationTimestamp: "2026-02-01T00:00:00Z"}}\n    other: {like: first}\n'
        "tests: [{name: new, pod: other, expect: {feasible: [n]}}]\n"
    )
    (result,) = run_suite(read_suite([tmp_path / "new.test.yaml"]))
    assert result.passed


def test_cards_of_a_pod_with_a_mistake(tmp_path: Path) -> None:
    pod = "{cpu: '1', memory: lots, requests: {nvidia.com/gpu-milli: '500'}}"
    (tmp_path / "a.test.yaml").write_text(
        f"apiVersion: kdsl.dev/v1\nkind: RuleTest\nprofile: policies.atc23.best_fit.best_fit\n"
        f"rules: [{ROOT / 'rules'}]\n"
        f"fixtures: {{nodes: {{a: {{cpu: '4', memory: 4Gi}}}}, pods: {{p: {pod}}}}}\n"
        "tests: [{name: t, pod: p, expect: {picks: a, cards: [a-0]}}]\n"
    )
    suite = read_suite([tmp_path / "a.test.yaml"])
    (only,) = suite.diagnostics
    assert only.title.startswith("`lots` is not a quantity")
