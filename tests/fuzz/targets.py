"""What is fed: each target takes the bytes of one file and may answer with diagnostics, with nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kdsl.app import DEFAULT_SETTINGS, activate, shipped_rules
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.edits import apply, certain_fixes
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.check.lints import lint
from kdsl.check.model import RuleSet
from kdsl.check.views import load_views
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.config.configuration import read_configuration
from kdsl.hooks.errors import PluginError
from kdsl.hooks.state import CycleState
from kdsl.lang.discovery import read_source
from kdsl.lang.formatter import format_source
from kdsl.lang.loader import load_sources
from kdsl.lang.twin import convert
from kdsl.plan.cost.measured import measure
from kdsl.plan.cost.profiles import profile_costs
from kdsl.plan.hookimpls import compile_profile
from kdsl.plan.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.report.findings import MACHINE_FORMATS, render_findings
from kdsl.testing.reading import read_test
from kdsl.testing.subject import Library

from tests.plan.lab import node, nodes_of

ROOT = Path(__file__).parent.parent.parent


class PastItsBoundError(AssertionError):
    """A rule took more steps than the formula of its cost says."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that reads files. `seeds` are the texts that mutations start from."""

    name: str
    seeds: Sequence[str]
    feed: Callable[[bytes], None]


def _texts(*patterns: str) -> list[str]:
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [path.read_text(encoding="utf-8") for path in paths]


def _twins(*patterns: str) -> list[str]:
    """Return the YAML form of rule files."""
    converted = (convert(Source("a.kdsl", text), to_twin=True)[0] for text in _texts(*patterns))
    return [text for text in converted if text is not None]


def _report(findings: Sequence[Diagnostic]) -> None:
    """Render what was found in every form, and try its fixes: all of that must work as well."""
    for style in ("full", "concise", *MACHINE_FORMATS):
        render_findings(findings, style)
    apply(certain_fixes(findings))


@cache
def _shipped() -> list[Source]:
    read = (read_source(path, path.read_bytes()) for path in sorted(shipped_rules().rglob("*.kdsl")))
    return [each for each in read if isinstance(each, Source)]


def rules(name: str) -> Callable[[bytes], None]:
    """Load, format and check a rule file; where it is right, lint it, and run its rules within their bounds."""

    def feed(data: bytes) -> None:
        source = read_source(Path(name), data)
        if isinstance(source, Diagnostic):
            _report([source])
            return
        if name.endswith(".kdsl"):
            format_source(source)
        loaded = load_sources([source], lambda: [_shipped()])
        _report(loaded.diagnostics)
        if any(finding.is_error for finding in loaded.diagnostics):
            return
        checked = check_program(loaded.program)
        _report(checked.diagnostics)
        if checked.rules is not None:
            _report(lint(loaded.program, checked.rules))
            stay_within_bounds(checked.rules)

    return feed


def configuration(data: bytes) -> None:
    """Read a configuration."""
    with suppress(UnicodeDecodeError):
        _report(read_configuration(Source("kdsl.yaml", data.decode())).diagnostics)


@cache
def _library() -> Library:
    return Library(activate(DEFAULT_SETTINGS))


def rule_test(data: bytes) -> None:
    """Read a rule test; its cases are not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.test.yaml"
        path.write_bytes(data)
        found: list[Diagnostic] = []
        read_test(path, _library(), found, [shipped_rules()])
        _report(found)


POD = PodInfo("p", images=("a", "b"), namespace="n" * 60)
NODES = (node("n" * 100), node("m", labels={f"k{at}": "v" * 63 for at in range(20)}))


def stay_within_bounds(found: RuleSet) -> None:
    """Run every rule on a pod and nodes; raise PastItsBoundError where one takes more than its formula says."""
    views, nodes = load_views(), nodes_of(*NODES)
    sizes = measure(views, [("Pod", POD), *(("Node", each) for each in nodes.nodes())])
    for profile in found.profiles.values():
        for each in profile_costs(found, profile, views):
            if each.cost is None or each.kind in ("queue", "tighten"):
                continue
            bounds = [
                part.at(lambda name: sizes.get(name, 0)) for part in (each.cost.per_node, each.cost.per_pod)
            ]
            if None in bounds or max(bound or 0 for bound in bounds) > DEFAULT_STEPS.node:
                continue
            steps = Steps(bounds[0] or 0, bounds[1] or 0)
            told = _run(found, profile.qualified, each.rule.name, each.kind, steps, nodes)
            if "more than " in told and " steps" in told:
                raise PastItsBoundError(f"{each.rule.qualified}: {told}; its cost is {each.cost}")


def _run(found: RuleSet, profile: str, name: str, kind: str, steps: Steps, nodes: NodeSet) -> str:
    compiled = compile_profile(found, found.profiles[profile], steps=steps)
    state = CycleState()
    if kind == "score":
        score = next(each for each in compiled.scores if each.name == name)
        with suppress(PluginError):
            score.pre_score(state, POD, nodes)
            score.normalize_score(state, POD, nodes, score.score(state, POD, nodes))
        return ""
    predicate = next(each for each in compiled.predicates if each.name == name)
    decided = predicate.pre_filter(state, POD, nodes)
    column = None if decided is not None else predicate.filter(state, POD, nodes)
    return str(decided) if column is None else " ".join(str(status) for status in column.table)


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target(
            "rules",
            _texts(
                "rules/**/*.kdsl", "examples/**/*.kdsl", "tests/lang/samples/*.kdsl", "tests/check/**/*.kdsl"
            ),
            rules("a.kdsl"),
        ),
        Target("twin", _twins("rules/**/*.kdsl", "tests/lang/samples/*.kdsl"), rules("a.kdsl.yaml")),
        Target(
            "configuration",
            [
                "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules:\n  paths: [rules]\n"
                "profiles: [default]\nplugins:\n- name: default-binder\n  args: {a: 1}\nparallelism: 4\n"
                "limits: {ruleFiles: 3, nodeSteps: 5}\ntieBreak: heap\nseed: 7\n"
            ],
            configuration,
        ),
        Target(
            "test",
            _texts("tests/rules/*.test.yaml", "tests/testing/**/*.test.yaml", "examples/**/*.test.yaml"),
            rule_test,
        ),
    )
}
