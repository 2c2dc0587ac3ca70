"""Cases about preemption: the node that is nominated for a pod, and the pods that are evicted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl.app import DEFAULT_PLUGINS, DEFAULT_SETTINGS, Settings
from kdsl.report.diagnostics import render
from kdsl.testing.codes import TestCode
from kdsl.testing.coverage import coverage_text
from kdsl.testing.mutants import is_noticed, mutants_of, mutants_text, run_mutants
from kdsl.testing.render import results_text
from kdsl.testing.shape import schema
from kdsl.testing.subject import Library
from kdsl.testing.suite import Suite, coverage_of, files_under_test, read_suite, run_suite

from tests.hooks.test_installed import Site

ROOT = Path(__file__).parents[2]
RULES = """kdsl 1
package room
import kubernetes.v1_36
queue Q { order by pod.priority desc, pod.queuedAt }
score Nothing { value 0 }
preemption Room {
  eligible when pod.preemptionPolicy != "Never" else "not eligible"
  victim when victim.priority < pod.priority && victim.namespace != "kube-system"
  order by victim.priority desc
  candidates 2
  choose by candidate.victims.size(), candidate.victims.map(v, v.priority).sum()
}
predicate Fits { require pod.requests["cpu"] <= node.allocatable["cpu"] else "no" }
profile room {
  scheduler "room" queue Q
  preemption Room
  predicates { v1_36.NodeResourcesFit }
  scores { Nothing weight 1 }
}
profile still {
  scheduler "still" queue Q
  predicates { v1_36.NodeResourcesFit }
  scores { Nothing weight 1 }
}
"""
PLUGIN = """
from kdsl.hooks import hookimpl
from kdsl.hooks.specs import Nominated

class Plugin:
    def __init__(self, args, context): ...

    @hookimpl
    def post_filter(self):
        return Nominated("dear", ("default/high",))
"""
FIXTURES = """
fixtures:
  nodes:
    many: {cpu: "4"}
    dear: {like: many}
    cheap: {like: many}
    mixed: {like: many}
  pods:
    web: {cpu: "4", priority: 9}
    small: {like: web, cpu: "2"}
    low: {cpu: "2", on: many, count: 2, priority: 1}
    high: {cpu: "4", on: dear, priority: 8}
    middle: {like: high, on: cheap, priority: 5}
    spent: {cpu: "2", on: mixed, priority: 6}
    spared: {like: spent, on: mixed, priority: 7}
"""
GOOD = """
- {name: few pods go, pod: web, nodes: [many, dear], expect: {nominated: dear, victims: [high]}}
- {name: pods of little priority go, pod: web, nodes: [dear, cheap], expect: {nominated: cheap, victims: [middle]}}
- {name: two nodes are enough, pod: web, nodes: [many, cheap, dear], expect: {nominated: dear}}
- {name: both go, pod: web, nodes: [many], expect: {victims: [low-2, low-1]}}
- {name: the more important pod stays, pod: small, nodes: [mixed], expect: {victims: [spent]}}
- name: not the same priority
  pod: web
  nodes: [dear]
  matrix: {pods.high.priority: [9, 10]}
  expect: {nominated: "", victims: []}
- name: nor pods of the system
  pod: web
  nodes: [dear]
  matrix: {pods.high.namespace: [kube-system]}
  expect: {victims: []}
- name: nor for a polite pod
  pod: web
  matrix: {pods.web.spec: [{preemptionPolicy: Never}]}
  expect: {nominated: ""}
"""


def _suite(
    tmp_path: Path,
    cases: str,
    subject: str = "profile: room",
    fixtures: str = FIXTURES,
    settings: Settings = DEFAULT_SETTINGS,
) -> Suite:
    (tmp_path / "room.kdsl").write_text(RULES)
    path = tmp_path / "room.test.yaml"
    path.write_text(f"apiVersion: kdsl.dev/v1\nkind: RuleTest\n{subject}\n{fixtures}\ntests:\n{cases}")
    return read_suite([path], library=Library(settings))


def _run(suite: Suite) -> str:
    assert not suite.diagnostics, render(suite.diagnostics)
    return results_text(run_suite(suite))


def test_good_cases_pass_and_notice_every_mutant_of_the_preemption(tmp_path: Path) -> None:
    suite = _suite(tmp_path, GOOD)
    assert "9 passed" in _run(suite)
    coverage = coverage_of(suite)
    run_suite(suite, probe=coverage)
    assert "  12/12  preemption Room" in coverage_text(coverage)
    mutants = [each for each in mutants_of(files_under_test(suite)) if each.declaration.name.text == "Room"]
    assert {mutant.span.line for mutant in mutants} == set(range(7, 12))
    fates = [(is_noticed(mutant, suite.tests, 0), str(mutant.span), mutant.what) for mutant in mutants]
    assert [each for each in fates if each[0] is False] == []
    assert sum(each[0] is True for each in fates) > 10


def test_messages_do_not_notice_who_is_evicted(tmp_path: Path) -> None:
    """The message is the same for each choice, so a case that only has the message does not notice mistakes."""
    text = "0/1 nodes are available: 1 Insufficient cpu."
    case = "- {name: room, pod: small, nodes: [mixed], expect: {%s}}\n"
    suite = _suite(tmp_path, case % f"message: '{text}'")
    assert "1 passed" in _run(suite)
    survivors = mutants_text(run_mutants(suite.tests, files_under_test(suite)))
    assert "room.kdsl:9:12  order reversed" in survivors
    better = _suite(tmp_path, case % "victims: [spent]")
    assert "1 passed" in _run(better)
    assert "room.kdsl:9:12" not in mutants_text(run_mutants(better.tests, files_under_test(better)))


def test_manifests_and_copies_are_victims_under_their_names(tmp_path: Path) -> None:
    """Pods of two namespaces may have one name: the fixtures tell them apart."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: real}\nspec: {nodeName: n, containers: [{name: c}]}\n"
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {pods: '4'}}\n"
    (tmp_path / "cluster.yaml").write_text(f"{pod}---\n{node}")
    fixtures = """
fixtures:
  from: [cluster.yaml]
  pods:
    web: {priority: 9}
    other: {on: n, namespace: far, metadata: {name: real}, count: 2}
    left: {on: n, priority: 10}
"""
    case = "- {name: room, pod: web, matrix: {pods.real.priority: [1], pods.other.priority: [%s]}, expect: {victims: [%s]}}"
    assert "1 passed" in _run(_suite(tmp_path, case % (2, "real"), fixtures=fixtures))
    assert "1 passed" in _run(_suite(tmp_path, case % (0, "other-2"), fixtures=fixtures))
    assert "+ actual    [other-2]" in _run(_suite(tmp_path, case % (0, "real"), fixtures=fixtures))


@pytest.mark.parametrize("subject", ["profile: still", "predicate: Fits", "score: Nothing"])
@pytest.mark.parametrize("expect", ["victims: []", "nominated: ''"])
def test_a_case_that_cannot_fail_for_want_of_a_preemption_is_an_error(
    tmp_path: Path, subject: str, expect: str
) -> None:
    suite = _suite(tmp_path, f"- {{name: a, pod: web, expect: {{{expect}}}}}", subject)
    (found,) = suite.diagnostics
    assert found.code == TestCode.WRONG_VALUE
    assert found.title == "the subject of the test has no preemption, so no pod makes room"
    assert found.span is not None and found.span.text == expect.partition(": ")[2]


def test_a_plugin_may_make_room_without_a_preemption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook `post_filter` of a plugin can nominate a node in a profile that has no preemption."""
    monkeypatch.syspath_prepend(str(tmp_path))
    Site(tmp_path).install(
        "room-maker", files={"plugin.py": PLUGIN, "args.schema.json": '{"type": "object"}'}
    )
    active = Settings(plugins={**DEFAULT_PLUGINS, "room-maker": {}})
    case = "- {name: a, pod: web, nodes: [dear], expect: {nominated: %s, victims: [%s]}}"
    assert "1 passed" in _run(_suite(tmp_path, case % ("dear", "high"), "profile: still", settings=active))
    failed = _run(_suite(tmp_path, case % ('""', ""), "profile: still", settings=active))
    assert "+ actual    dear" in failed and "+ actual    [high]" in failed


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the guide passes, and fails as it says with the other expectation."""
    section = (ROOT / "docs/test-rules.md").read_text(encoding="utf-8").partition("\n## Preemption\n")[2]
    shown, printed = re.findall(r"^```\w*\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[:2]
    right, wrong = "{nominated: n1, victims: [batch-1, batch-2]}", "{nominated: n2, victims: [web]}"
    assert right in shown and f"expects `{wrong}`" in section
    monkeypatch.chdir(tmp_path)
    path = Path("room.test.yaml")
    for text, expected in ((shown, "3 passed"), (shown.replace(right, wrong), printed)):
        path.write_text(f"apiVersion: kdsl.dev/v1\nkind: RuleTest\n{text}")
        assert expected in _run(read_suite([path])) + "\n"


def test_the_schema_allows_no_other_shapes() -> None:
    expect = schema()["$defs"]["podCase"]["properties"]["expect"]
    validator = Draft202012Validator({**expect, "$defs": schema()["$defs"]})
    for fit in ({"nominated": "n"}, {"nominated": ""}, {"victims": []}, {"victims": ["a", "b-1"]}):
        assert validator.is_valid(fit), fit
    for unfit in ({"nominated": None}, {"nominated": ["n"]}, {"victims": "a"}, {"victims": [""]}):
        assert not validator.is_valid(unfit), unfit
    assert validator.is_valid({"victims": ["a"]}) and not validator.is_valid({"victims": ["a", "a"]})
