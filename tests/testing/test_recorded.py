"""Recorded decisions as fixtures: what was recorded comes out again, on examples and on random workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.app import DEFAULT_PLUGINS, Settings, check_rules
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source
from kdsl.check.model.rule_set import RuleSet
from kdsl.cycle.decision import TieBreak
from kdsl.report.decisions import decision_document
from kdsl.report.diagnostics import render
from kdsl.sim.run import simulate
from kdsl.sim.workload import read_kubernetes
from kdsl.testing.cases import Setting
from kdsl.testing.document import parse_document
from kdsl.testing.fixture_reading import read_fixtures
from kdsl.testing.fixtures import FixtureKind
from kdsl.testing.session import Session
from kdsl.testing.suite import Suite, read_suite, run_suite

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "rules"
QUICKSTART = ROOT / "examples" / "quickstart"
DATA = ROOT / "tests" / "conformance" / "data" / "sequences"


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    checked = check_rules((RULES,))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


@pytest.fixture(scope="module")
def session(rules: RuleSet) -> Session:
    return Session(rules, "kubernetes.v1_36.default", DEFAULT_PLUGINS)


def _record(rules: RuleSet, folder: Path, paths: list[Path], how: Settings) -> list[dict[str, Any]]:
    """Simulate what `paths` hold, write the trace into the folder and return its decisions."""
    workload, problems = read_kubernetes([str(path) for path in paths], [], keeps_manifests=True)
    assert problems == ()
    lines: list[str] = []
    simulate(rules, workload, how, record=lines.append)
    (folder / "trace.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return [document["decision"] for document in map(json.loads, lines) if document["kind"] == "TraceCycle"]


def _comes_out_again(session: Session, folder: Path, cycle: int) -> None:
    """Decide a cycle of the trace again, as the case of a test file does, and compare all of it."""
    found: list[Diagnostic] = []
    place = parse_document(Source("t.yaml", f"from: ['trace.jsonl#cycle={cycle}']"), found)
    fixtures = read_fixtures(place, folder, found)
    assert not found and fixtures.recorded is not None, render(found)
    setting = Setting(
        name="", span=fixtures.of[FixtureKind.PODS][fixtures.recorded.pod].span, fixtures=fixtures,
        nodes=tuple(fixtures.of[FixtureKind.NODES]),
    )  # fmt: skip
    pod = fixtures.pod(fixtures.recorded.pod)
    decision = session.decide(setting.cluster(), pod, recorded=setting.recorded_for(fixtures.recorded.pod))
    now, then = decision_document(decision), dict(fixtures.recorded.decision)
    now.pop("verdicts", None)
    for told in (now, then):
        # A count of what happened to the cluster, which differs where the same cluster came about otherwise.
        del told["snapshot"]
    assert now == then


def _suite(folder: Path, cycle: int, pod: str, expect: str, more: str = "") -> Suite:
    path = folder / f"c{cycle}.test.yaml"
    path.write_text(
        f"apiVersion: kdsl.dev/v1\nkind: RuleTest\nrules: [{RULES}]\nprofile: kubernetes.v1_36.default\n"
        f"fixtures: {{from: ['trace.jsonl#cycle={cycle}']{more}}}\n"
        f"tests: [{{name: replay, pod: {pod}, expect: {expect}}}]\n"
    )
    return read_suite([path])


def test_every_cycle_of_the_quickstart_comes_out_again(
    rules: RuleSet, session: Session, tmp_path: Path
) -> None:
    paths = [QUICKSTART / "cluster.yaml", QUICKSTART / "pods.yaml"]
    decisions = _record(rules, tmp_path, paths, Settings(profile="kubernetes.v1_36.default"))
    assert len(decisions) > 5
    for cycle in range(len(decisions)):
        _comes_out_again(session, tmp_path, cycle)


@pytest.mark.parametrize("tie_break", [TieBreak.HEAP, TieBreak.RANDOM])
def test_a_search_begins_where_the_recorded_one_did(
    rules: RuleSet, session: Session, tmp_path: Path, tie_break: TieBreak
) -> None:
    """Three hundred nodes: only some are looked at, from another place each time."""
    paths = [DATA / "basic-300.cluster.jsonl.gz", DATA / "basic-300.pending.jsonl.gz"]
    how = Settings(tie_break=tie_break, seed=3, percentage=50)
    decisions = _record(rules, tmp_path, paths, how)
    cycles = [at for at, each in enumerate(decisions) if each["startIndex"]][::100]
    assert len(cycles) > 2
    for cycle in cycles:
        _comes_out_again(session, tmp_path, cycle)


def test_pods_that_make_room_come_out_again(rules: RuleSet, session: Session, tmp_path: Path) -> None:
    """Evictions, nominated pods and pods that come back are all in the trace."""
    pods = (
        ("low-0", 0, 2, "nodeName: n0, "),
        ("low-1", 1, 2, "nodeName: n1, "),
        ("high-0", 10, 2, ""),
        ("high-1", 10, 1, ""),
        ("mid", 5, 1, ""),
    )
    (tmp_path / "objects.yaml").write_text(
        "".join(
            f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{at}}}\n"
            "status: {allocatable: {cpu: '2', memory: 4Gi, pods: '10'}}\n"
            for at in range(2)
        )
        + "".join(
            f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{priority: {priority}, {on}"
            f"containers: [{{name: c, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}\n"
            f"status: {{phase: {'Running' if on else 'Pending'}, startTime: '2026-01-01T00:00:00Z'}}\n"
            for name, priority, cpu, on in pods
        )
    )
    decisions = _record(rules, tmp_path, [tmp_path / "objects.yaml"], Settings())
    assert any(each["victims"] for each in decisions)
    assert [each["pod"] for each in decisions].count("default/high-0") == 2
    for cycle in range(len(decisions)):
        _comes_out_again(session, tmp_path, cycle)


_AMOUNTS = st.sampled_from(["250m", "1", "1500m", "3"])


@settings(max_examples=10)
@given(
    nodes=st.lists(st.tuples(_AMOUNTS, st.sampled_from("ab")), min_size=1, max_size=5),
    pods=st.lists(
        st.tuples(_AMOUNTS, st.integers(0, 2), st.sampled_from(["", "a", "b"])), min_size=1, max_size=8
    ),
)
def test_random_workloads_come_out_again(
    rules: RuleSet,
    session: Session,
    tmp_path_factory: pytest.TempPathFactory,
    nodes: list[tuple[str, str]],
    pods: list[tuple[str, int, str]],
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{at}", "labels": {"zone": zone}},
            "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "3"}},
        }
        for at, (cpu, zone) in enumerate(nodes)
    ]
    objects += [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{at}"},
            "spec": {
                "priority": priority,
                "nodeSelector": {"zone": zone} if zone else {},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            },
        }
        for at, (cpu, priority, zone) in enumerate(pods)
    ]
    (folder / "objects.jsonl").write_text("\n".join(map(json.dumps, objects)))
    decisions = _record(rules, folder, [folder / "objects.jsonl"], Settings())
    for cycle in range(len(decisions)):
        _comes_out_again(session, folder, cycle)


def test_a_decision_that_moved_is_shown(rules: RuleSet, tmp_path: Path) -> None:
    decisions = _record(rules, tmp_path, [QUICKSTART / "cluster.yaml", QUICKSTART / "pods.yaml"], Settings())
    cycle, node = next((at, each["node"]) for at, each in enumerate(decisions) if each["node"])
    suite = _suite(tmp_path, cycle, decisions[cycle]["pod"].partition("/")[2], "{recorded: true}")
    assert not suite.diagnostics, render(suite.diagnostics)
    assert run_suite(suite)[0].passed
    trace = tmp_path / "trace.jsonl"
    lines = trace.read_text().splitlines()
    lines[cycle + 1] = lines[cycle + 1].replace(f'"node":"{node}"', '"node":"elsewhere"')
    trace.write_text("\n".join(lines))
    suite = _suite(tmp_path, cycle, decisions[cycle]["pod"].partition("/")[2], "{recorded: true}")
    (result,) = run_suite(suite)
    assert [(each.field, each.expected, each.actual) for each in result.mismatches] == [
        ("recorded.node", "elsewhere", node)
    ]


@pytest.mark.parametrize(
    ("cycle", "expect", "title"),
    [
        (999, "{placed: true}", "holds no cycle 999: its cycles are 0 to"),
        (0, "{recorded: true}", "no recorded decision is about `web-9`"),
    ],
)
def test_what_a_trace_does_not_hold_is_said(
    rules: RuleSet, tmp_path: Path, cycle: int, expect: str, title: str
) -> None:
    _record(rules, tmp_path, [QUICKSTART / "cluster.yaml", QUICKSTART / "pods.yaml"], Settings())
    suite = _suite(tmp_path, cycle, "web-9", expect, ", pods: {web-9: {}}")
    assert [title in each.title for each in suite.diagnostics] == [True], render(suite.diagnostics)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("trace.jsonl", ["`trace.jsonl` is a record without the number of a cycle"]),
        ("trace.jsonl#cycle=x", ["no file matches `trace.jsonl#cycle=x`"]),
        ("trace.jsonl#cycle=99", ["`trace.jsonl` holds no cycle 99: its cycles are 0 to 7"]),
        ("none.jsonl#cycle=0", ["cannot read this file: no such file or directory"]),
        ("trace.jsonl#cycle=0", ["there is no pod `web` among the fixtures"]),
    ],
)
def test_a_source_that_is_wrong_is_told_alone(
    rules: RuleSet, tmp_path: Path, source: str, said: list[str]
) -> None:
    _record(rules, tmp_path, [QUICKSTART / "cluster.yaml", QUICKSTART / "pods.yaml"], Settings())
    test = tmp_path / "a.test.yaml"
    test.write_text(
        f"""apiVersion: kdsl.dev/v1
kind: RuleTest
profile: kubernetes.v1_36.default
fixtures: {{from: ['{source}']}}
tests:
- {{name: a, pod: web, expect: {{recorded: true}}}}
"""
    )
    found = read_suite([test]).diagnostics
    assert [each.title.replace(f"{tmp_path}/", "") for each in found] == said
    if source in ("trace.jsonl", "trace.jsonl#cycle=x"):
        assert found[0].help == ("cycles are counted from 0: `trace.jsonl#cycle=0`",)


def test_a_warning_about_all_pods_of_a_record_comes_once(rules: RuleSet, tmp_path: Path) -> None:
    """A record of pods from files without the class: each pod lacks the priority."""
    plain = {"runtimeClassName": "kata", "containers": [{"name": "c", "image": "i"}]}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{at}"}, "spec": plain} for at in range(3)
    ]
    (tmp_path / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    paths = [str(QUICKSTART / "cluster.yaml"), str(tmp_path / "pods.json")]
    workload, _ = read_kubernetes(paths, [], keeps_manifests=True)
    lines: list[str] = []
    simulate(rules, workload, Settings(profile="kubernetes.v1_36.default"), record=lines.append)
    (tmp_path / "trace.jsonl").write_text("".join(f"{line}\n" for line in lines))
    found: list[Diagnostic] = []
    place = parse_document(Source("t.yaml", "from: ['trace.jsonl#cycle=2']"), found)
    assert len(read_fixtures(place, tmp_path, found).of[FixtureKind.PODS]) >= 3
    assert [one.title for one in found] == [
        "1 pod has a `runtimeClassName`, but not what the API server takes from the class"
    ]
