"""The targets: each takes the bytes of one file and may answer with diagnostics only."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from kdsl.app import DEFAULT_SETTINGS, shipped_rules
from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.base.file_policy import named_file
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.lints import lint
from kdsl.check.model.types import DYN, INT, STRING, list_of, map_of
from kdsl.cli.fixing import apply, certain_fixes
from kdsl.config.configuration import read_configuration
from kdsl.config.imports import import_configuration
from kdsl.configured import check_loaded
from kdsl.eval.values import EvalError
from kdsl.lab.experiment import load_experiment
from kdsl.lang.discovery import read_source
from kdsl.lang.formatter import format_source
from kdsl.lang.loader import load_sources
from kdsl.lang.parser import parse_expression
from kdsl.lang.twin import convert
from kdsl.plan.compile.expression import compile_expression
from kdsl.report.findings import MACHINE_FORMATS, render_findings
from kdsl.rulebook.certain import certain_errors
from kdsl.testing.cases import PropertyCase
from kdsl.testing.reading import read_test
from kdsl.testing.render import results_text
from kdsl.testing.running import Runner
from kdsl.testing.subject import Library

from tests.fuzz.bounds import stay_within_bounds
from tests.fuzz.cards import profile_of, serve

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Target:
    """Something that reads files. `seeds` returns the texts that mutations start from: pytest need not read them to
    know the targets.
    """

    name: str
    seeds: Callable[[], Sequence[str]]
    feed: Callable[[bytes], None]


@cache
def _texts(*patterns: str) -> list[str]:
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [path.read_text(encoding="utf-8") for path in paths]


@cache
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


@cache
def _library() -> Library:
    return Library(DEFAULT_SETTINGS)


def rules(name: str) -> Callable[[bytes], None]:
    """Load, format and check a rule file; where it is right, lint it, run its rules within their bounds, and
    let pods ask its devices for cards.
    """

    def feed(data: bytes) -> None:
        source = read_source(Path(name), data)
        if isinstance(source, Diagnostic):
            _report([source])
            return
        if name.endswith(".kdsl"):
            format_source(source)
        loaded = load_sources([source], lambda: [_shipped()])
        _report(loaded.diagnostics)
        checked = check_program(loaded.program, externals=_library().plugins.externals)
        if has_errors(loaded.diagnostics):
            _report(list(certain_errors(checked.diagnostics, loaded.program, loaded.diagnostics)))
            return
        _report(checked.diagnostics)
        if checked.rules is not None:
            _report(lint(loaded.program, checked.rules))
            stay_within_bounds(checked.rules, name)
            profile = profile_of(loaded.program, name)
            if profile is not None:
                whole = load_sources([source, profile], lambda: [_shipped()]).program
                shared = check_program(whole, externals=_library().plugins.externals)
                serve(shared.rules or checked.rules)

    return feed


_VARIABLES = {"items": list_of(INT), "counts": map_of(STRING, INT), "text": STRING, "it": DYN}
_VALUES = ((3, 1, 2), {"k": 1}, "text", {"a": (1, "b", None)})
_EXPRESSIONS = (
    "items.map(x, x * 2).filter(x, x > 2).exists(x, x == 4) && !(5 in items)",
    'counts[?"k"].orValue(0) + items[0] / 2 - (-9223372036854775807 - 1) % 3',
    'text.matches("^[a-z]{2,8}(x|y)*$") ? text.upperAscii().replace("T", "é") : "no".charAt(0)',
    'it.a.exists(x, type(x) == string && x == "b") || has(it.b) || it["a"][2] == null',
    'duration("1h30m") + duration("1s") < timestamp("2024-02-29T00:00:00Z") - timestamp("2023-01-01T00:00:00Z")',
    'quantity("1500m") + quantity("2Gi") >= quantity("1") && semver("1.2.3") < semver("1.10.0")',
    "items.transformList(i, x, i + x).sum() + math.greatest(1, 2, 3) + items.sort()[0]",
    "[items.sortBy(i, -i), [it.b]].flatten(2)[0] == [[items]].flatten().size()",
    "counts.transformMap(k, v, v > 0, k + string(v)).all(k, v, v.startsWith(k))",
    'text.split("x", 2).join("-").format(["a", 1, 1.5, b"c", [1], {1: true}])',
    '"%s %d %.3f %x %o %e %b".format(["a", 1, 1.5, 255, 8, 1e300, 5])',
    'cel.bind(x, items, x.size() + x.lastIndexOf(1)) + uint("3") == 3u',
    'base64.decode(base64.encode(b"abc\\xff")) == b"abc\\xff" && sets.contains([1, 2], [2])',
    "optional.of(items).optMap(x, x[?7]).hasValue() || optional.none().or(optional.of(1)).value() == 1",
    'ip("10.0.0.1").isLoopback() || cidr("10.0.0.0/8").containsIP("10.1.2.3") || url("https://a/b?c=d").getHost() == "a"',
    'text.findAll("[a-z]+").size() + text.find("t(e|x)").size() + int("0x1f") + int(1e18)',
    'json.decode("{\\"a\\": [1, 2.5, null]}").a[1] > 2.0 || [1, 2] + [3] == [1, 2, 3] || "é" < "z"',
)
"""What `expression` starts from: something of every part of the library."""


def expression(data: bytes) -> None:
    """Check an expression and evaluate it, in CEL's dynamic mode: it may fail, and it may not run on."""
    with suppress(UnicodeDecodeError):
        expr, found = parse_expression(Source("e", data.decode()))
        _report(found)
        if expr is None:
            return
        typed, problems = check_expression(expr, Environment(_VARIABLES))
        _report(problems)
        if typed is not None:
            with suppress(EvalError):
                compile_expression(typed)(_VALUES)


def imported(data: bytes) -> None:
    """Convert a configuration of another scheduler; what comes out must be right."""
    with suppress(UnicodeDecodeError):
        result = import_configuration(Source("a.yaml", data.decode()))
        _report(result.diagnostics)
        if result.converted is None:
            return
        result.converted.settings_text("a.kdsl")
        loaded = load_sources([Source("a.kdsl", result.converted.text)], lambda: [_shipped()])
        found = (
            *loaded.diagnostics,
            *check_program(loaded.program, externals=_library().plugins.externals).diagnostics,
        )
        assert not has_errors(found), render_findings(found, "concise")


def configuration(data: bytes) -> None:
    """Read a configuration, and check its parts; a broken one always has an error."""
    with suppress(UnicodeDecodeError):
        read = read_configuration(Source("kdsl.yaml", data.decode()))
        checked = check_loaded(read)
        _report(checked.diagnostics)
        assert read.configuration is not None or has_errors(checked.diagnostics)


def experiment(data: bytes) -> None:
    """Read an experiment."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "experiment.yaml"
        path.write_bytes(data)
        try:
            load_experiment(path)
        except InvalidInputError as error:
            _report(error.diagnostics)


def rule_test(data: bytes) -> None:
    """Read a rule test, and run its first cases."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.test.yaml"
        path.write_bytes(data)
        found: list[Diagnostic] = []
        test = read_test(named_file(path), _library(), found, [shipped_rules()])
        _report(found)
        if test is not None:
            results = [
                Runner(0).run(test, case) for case in test.cases[:3] if not isinstance(case, PropertyCase)
            ]
            results_text(results, verbose=True)


_CONFIGURATIONS = (
    "kind: Policy\napiVersion: v1\npredicates:\n- {name: PodFitsResources}\n- {name: zone, argument: {serviceAffinity: {labels: [zone]}}}\n"
    "- {name: labels, argument: {labelsPresence: {labels: [retiring], presence: false}}}\npriorities:\n"
    "- {name: LeastRequestedPriority, weight: 2}\n- {name: spread, weight: 1, argument: {serviceAntiAffinity: {label: rack}}}\n"
    "hardPodAffinitySymmetricWeight: 5\nalwaysCheckAllPredicates: true\n",
    "nvidia:\n  resourceCountName: nvidia.com/gpu\n  resourceMemoryName: nvidia.com/gpumem\n"
    "  resourceMemoryPercentageName: nvidia.com/gpumem-percentage\n  resourceCoreName: nvidia.com/gpucores\n"
    "  defaultMemory: 0\n  defaultCores: 0\n  deviceSplitCount: 10\n",
)


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target(
            "rules",
            partial(
                _texts,
                "rules/**/*.kdsl",
                "examples/**/*.kdsl",
                "examples/**/*.broken",
                "tests/lang/samples/*.kdsl",
                "tests/check/**/*.kdsl",
            ),
            rules("a.kdsl"),
        ),
        Target("twin", partial(_twins, "rules/**/*.kdsl", "tests/lang/samples/*.kdsl"), rules("a.kdsl.yaml")),
        Target("expression", lambda: _EXPRESSIONS, expression),
        Target(
            "imported",
            lambda: [*_texts("examples/migrate-from-kube-scheduler/scheduler.yaml"), *_CONFIGURATIONS],
            imported,
        ),
        Target(
            "configuration",
            lambda: [
                "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules:\n  paths: [rules]\n"
                "profiles: [default]\nplugins:\n- name: default-binder\n  args: {a: 1}\nparallelism: 4\n"
                "limits: {ruleFiles: 3, nodeSteps: 5, podSteps: 9, ruleCost: 7, profileCost: 8}\ntieBreak: heap\nseed: 7\n"
                "percentageOfNodesToScore: 50\nbackoff: {initial: 500ms, max: 2m}\nonInvalid: exit\n",
                *_texts("examples/**/kdsl.yaml", "examples/**/*.config.yaml"),
            ],
            configuration,
        ),
        Target("experiment", partial(_texts, "examples/lab/*/*.yaml"), experiment),
        Target(
            "test",
            partial(
                _texts, "tests/rules/*.test.yaml", "tests/testing/**/*.test.yaml", "examples/**/*.test.yaml"
            ),
            rule_test,
        ),
    )
}
