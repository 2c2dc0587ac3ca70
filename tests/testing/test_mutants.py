"""Mistakes put into rules: which there are, and which a good and a bad test notice."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from kdsl.base.span import Source
from kdsl.cli.main import cli
from kdsl.lang.parser import parse_file
from kdsl.testing.mutants import is_noticed, mutants_of, mutants_text, run_mutants
from kdsl.testing.suite import files_under_test, read_suite

RULES = """kdsl 1
package m

predicate P {
  applies when pod.priority > 3
  for t in node.taints where t.effect in ["NoSchedule", "NoExecute"] {
    require pod.tolerates(t) && !node.unschedulable
      else unresolvable "no"
  }
}
"""
TEST = """
apiVersion: kdsl.dev/v1
kind: RuleTest
predicate: P
fixtures:
  nodes:
    node: {}
    tainted: {taints: ["a=b:NoExecute"]}
    scheduling: {taints: ["a=b:NoSchedule"]}
    preferring: {taints: ["a=b:PreferNoSchedule"]}
    cordoned: {taints: ["c=d:NoExecute"], unschedulable: true}
  pods:
    low: {priority: 3}
    high: {priority: 4, tolerations: ["c=d"]}
tests:
"""
GOOD = """
- name: high
  pod: high
  expect:
    feasible: [node, preferring]
    rejected: {tainted: {code: unresolvable}, cordoned: {by: P}}
- name: low
  pod: low
  expect: {feasible: [node, tainted, scheduling, preferring, cordoned]}
"""
POOR = """
- {name: high, pod: high, nodes: [node], expect: {feasible: [node]}}
"""


def test_mutants_of_a_predicate() -> None:
    file = parse_file(Source("m.kdsl", RULES)).file
    assert file is not None
    mutants = list(mutants_of([file]))
    assert [(mutant.span.line, mutant.what) for mutant in mutants] == [
        (5, "dropped"),
        (5, "negated"),
        (5, "`>` became `>=`"),
        (5, "`3` became `4`"),
        (6, "`where` dropped"),
        (6, "dropped"),
        (6, "dropped"),
        (7, "dropped"),
        (7, "negated"),
        (7, "made unschedulable"),
        (7, "dropped from `&&`"),
        (7, "dropped from `&&`"),
        (7, "`!` dropped"),
    ]
    distinct = {mutant.file for mutant in mutants}
    assert len(distinct) == len(mutants) and file not in distinct


def _report(tmp_path: Path, cases: str) -> str:
    (tmp_path / "m.kdsl").write_text(RULES)
    (tmp_path / "m.test.yaml").write_text(TEST + cases)
    suite = read_suite([tmp_path])
    assert not suite.diagnostics
    return mutants_text(run_mutants(suite.tests, files_under_test(suite)))


def test_a_good_test_notices_every_mutant(tmp_path: Path) -> None:
    assert (
        _report(tmp_path, GOOD) == "mutation 100.0%: 12 of 12 mutants noticed, 1 more refused by the checker"
    )


def test_a_poor_test_lets_mutants_live(tmp_path: Path) -> None:
    report = _report(tmp_path, POOR)
    assert "mutation 0.0%" in report
    assert "m.kdsl:7:5  made unschedulable: require pod.tolerates(t)" in report


def test_failing_cases_try_no_mutant(tmp_path: Path) -> None:
    (tmp_path / "m.kdsl").write_text(RULES)
    (tmp_path / "m.test.yaml").write_text(f"{TEST}- {{name: wrong, pod: high, expect: {{feasible: []}}}}\n")
    result = CliRunner().invoke(cli, ["test", "--mutate", str(tmp_path)])
    assert result.exit_code == 1
    assert "no mutant was tried, since cases fail" in result.stderr


def test_mutants_of_a_device() -> None:
    text = """kdsl 1
package m

device D {
  admit {
    applies when "a" in container.limits
    set env["B"] = "c" where pod.name == "d"
  }
  fit {
    require device.healthy
      else "no"
    together by device.numa
      else "apart"
  }
  annotate "k": "v" where allocation.cards.size() > 0
}
"""
    file = parse_file(Source("m.kdsl", text)).file
    assert file is not None
    assert [(mutant.span.line, mutant.what) for mutant in mutants_of([file])] == [
        (6, "dropped"),
        (6, "negated"),
        (7, "`where` dropped"),
        (7, "`==` became `!=`"),
        (10, "dropped"),
        (10, "negated"),
        (10, "made unresolvable"),
        (12, "dropped"),
        (15, "`where` dropped"),
        (15, "`>` became `>=`"),
        (15, "`0` became `1`"),
    ]


def test_a_device_has_the_statements_of_its_base() -> None:
    """A test of the device that extends another is asked about mistakes in that one."""
    path = Path(__file__).parents[1] / "rules" / "devices" / "fragmentation.test.yaml"
    suite = read_suite([path])
    (base,) = (
        file for file in files_under_test(suite) if file.span.source.path.endswith("devices/nvidia.kdsl")
    )
    healthy = [mutant for mutant in mutants_of([base]) if "device.healthy" in mutant.span.text]
    assert any(is_noticed(mutant, suite.tests, 0) for mutant in healthy)
