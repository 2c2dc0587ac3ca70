"""`kdsl check --plan`: the table of each profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from kdsl.app import check_rules
from kdsl.cli.main import cli
from kdsl.report.plan import plan_text

RULES = """kdsl 1
package a
import kubernetes.v1_36 as kubernetes

predicate Small {
  require pod.requests <= node.allocatable else "too small"
}

predicate Own {
  require pod.name != node.name else "its name is taken"
}

predicate Never {
  require 1 < 2 else "never"
}

score Idle {
  value node.podCount == 0 ? 100 : 0
}

profile one {
  scheduler "one"
  predicates {
    Small
    Own
    Never
  }
  scores {
    Idle weight 12
  }
  queue kubernetes.PrioritySort
}

profile two extends one {
  scheduler "two"
  tighten Small {
    require pod.requests <= node.allocatable - node.requested else "too full"
  }
}
"""

GOLDEN = """\
profile a.one
KIND       RULE                           WEIGHT  KNOWN WITH  MEMO  READS
queue      kubernetes.v1_36.PrioritySort       -  queue       no    pod.priority, pod.schedulingGates, queue
predicate  a.Small                             -  node        yes   node.static, pod.requests
predicate  a.Own                               -  node        no    node.static, pod.name
predicate  a.Never                             -  static      yes   -
score      a.Idle                             12  usage       yes   node.usage

profile a.two
KIND       RULE                           WEIGHT  KNOWN WITH  MEMO  READS
queue      kubernetes.v1_36.PrioritySort       -  queue       no    pod.priority, pod.schedulingGates, queue
predicate  a.Small                             -  node        yes   node.static, pod.requests
tighten    a.two/Small                         -  usage       yes   node.static, node.usage, pod.requests
predicate  a.Own                               -  node        no    node.static, pod.name
predicate  a.Never                             -  static      yes   -
score      a.Idle                             12  usage       yes   node.usage
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "a.kdsl"
    path.write_text(RULES, encoding="utf-8")
    return path


def test_golden(rules: Path) -> None:
    checked = check_rules([rules])
    assert checked.rules is not None, checked.diagnostics
    own = [each for each in plan_text(checked.rules).split("\n\n") if each.startswith("profile a.")]
    assert "\n\n".join(own) + "\n" == GOLDEN


def test_the_command_prints_it(rules: Path) -> None:
    result = CliRunner().invoke(cli, ["check", "--plan", str(rules)])
    assert result.exit_code == 0
    assert GOLDEN in result.stdout
    assert "file" in result.stderr


def test_what_a_plugin_reads_is_not_known(rules: Path) -> None:
    checked = check_rules([rules])
    assert checked.rules is not None
    profile = checked.rules.profiles["a.one"]
    idle = replace(profile.scores[0], score=replace(profile.scores[0].score, plugin="idle-score"))
    profiles = {"a.one": replace(profile, scores=(idle,))}
    last = plan_text(replace(checked.rules, profiles=profiles)).splitlines()[-1]
    assert last.split(maxsplit=5) == ["score", "a.Idle", "12", "-", "-", "plugin idle-score: not known"]


def test_there_is_no_plan_of_broken_rules(rules: Path) -> None:
    rules.write_text(RULES.replace("pod.name", "pod.nome"), encoding="utf-8")
    result = CliRunner().invoke(cli, ["check", "--plan", str(rules)])
    assert result.exit_code == 1
    assert "K0302" in result.stdout and "profile a.one" not in result.stdout


def test_it_is_text_only(rules: Path) -> None:
    result = CliRunner().invoke(cli, ["check", "--plan", "--format", "json", str(rules)])
    assert result.exit_code == 2
    assert result.stdout == "" and "--plan" in result.stderr
