"""`--skip-unknown` converts what kdsl has rules for, and leaves the rest as comments and warnings."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import check_text
from kdsl.base.diagnostic import Severity, has_errors
from kdsl.base.span import Source
from kdsl.config.codes import ConfigCode
from kdsl.config.imports import import_configuration

SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: Coscheduling
      - name: NodeResourcesFit
        weight: 3
    score:
      disabled: [{name: ImageLocality}]
"""
POLICY = """\
kind: Policy
apiVersion: v1
predicates: [{name: PodFitsResources}, {name: OurOwn}]
priorities: [{name: LeastRequestedPriority, weight: 1}, {name: Nicest, weight: 2}]
"""


@pytest.mark.parametrize(
    ("text", "titles", "kept"),
    [
        (SCHEDULER, ["unknown plugin `Coscheduling`"], "NodeResourcesFit 3"),
        (POLICY, ["unknown predicate `OurOwn`", "unknown priority `Nicest`"], "PodFitsResources"),
    ],
)
def test_unknown_plugins_become_comments(text: str, titles: list[str], kept: str, tmp_path: Path) -> None:
    source = Source("old.yaml", text)
    refused = import_configuration(source)
    assert refused.converted is None and has_errors(refused.diagnostics)
    assert any("--skip-unknown" in line for each in refused.diagnostics for line in each.help)
    result = import_configuration(source, skips_unknown=True)
    found = [each for each in result.diagnostics if each.code == ConfigCode.UNKNOWN_PLUGIN]
    assert [each.title for each in found] == titles
    assert {each.severity for each in found} == {Severity.WARNING}
    assert not any("--skip-unknown" in line for each in found for line in each.help)
    assert result.converted is not None
    comments = [line for line in result.converted.text.splitlines() if line.startswith("// ")]
    assert comments == [f"// Left out: {each.title} ({each.span})." for each in found]
    assert kept in result.converted.text
    assert not has_errors(check_text(tmp_path / "old.kdsl", result.converted.text).diagnostics)


def test_other_mistakes_stay_errors() -> None:
    result = import_configuration(Source("old.yaml", SCHEDULER + "nonsense: 1\n"), skips_unknown=True)
    assert result.converted is None
    assert [each.title for each in result.diagnostics if each.severity is Severity.ERROR]


def test_without_unknown_plugins_nothing_is_added() -> None:
    source = Source("old.yaml", SCHEDULER.replace("      - name: Coscheduling\n", ""))
    plain, skipping = import_configuration(source), import_configuration(source, skips_unknown=True)
    assert plain.converted is not None and skipping.converted is not None
    assert plain.converted.text == skipping.converted.text


IGNORED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/foo, example.com/bar]
extenders:
- urlPrefix: http://127.0.0.1:8888
  filterVerb: filter
  managedResources: [{name: example.com/bar, ignoredByScheduler: true}]
"""


def test_resources_that_an_extender_makes_count_are_told() -> None:
    result = import_configuration(Source("s.yaml", IGNORED))
    (found,) = (each for each in result.diagnostics if "ignoredResources" in each.title)
    assert found.title == "`ignoredResources` is not used: `example.com/foo` will count"
    assert (found.severity, str(found.span)) == (Severity.WARNING, "s.yaml:7:25")
    alone = IGNORED.replace("example.com/foo, ", "")
    assert not [
        each
        for each in import_configuration(Source("s.yaml", alone)).diagnostics
        if "ignoredResources" in each.title
    ]
