"""KubeSchedulerConfigurations as rules: what a profile says that differs from the default one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml
from kdsl.app import check_text
from kdsl.base.span import Source
from kdsl.check.model.rule_set import CheckedProfile
from kdsl.config.configuration import read_configuration
from kdsl.config.kube_plugins import MULTI_POINT
from kdsl.config.kube_rules import Converted, convert_kube_scheduler
from kdsl.config.kube_scheduler import read_kube_scheduler
from kdsl.hooks.manager import import_plugin
from kdsl.lang.formatter import format_source

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def convert(text: str, origin: str = "scheduler.yaml") -> Converted:
    result = read_kube_scheduler(Source(origin, HEADER + textwrap.dedent(text)))
    assert result.configuration is not None, result.diagnostics
    return convert_kube_scheduler(result.configuration, origin)


def checked(converted: Converted) -> list[CheckedProfile]:
    """Check the rules that came out; they are formatted already."""
    assert format_source(Source("a.kdsl", converted.text)).text == converted.text
    result = check_text(Path("imported.kdsl"), converted.text)
    assert result.rules is not None and not result.diagnostics, result.diagnostics
    return [result.rules.profiles[name] for name in converted.profiles]


def body(text: str) -> list[str]:
    """Return the lines of the only profile, without its scheduler name."""
    converted = convert(f"profiles: [{text}]")
    checked(converted)
    block = converted.text.partition("extends kubernetes.default {\n")[2].rpartition("}")[0]
    return [" ".join(line.split()) for line in block.splitlines()][1:]


def test_the_default_set_is_the_shipped_profile() -> None:
    (profile,) = checked(convert(""))
    shipped = profile.extends
    assert shipped == "kubernetes.v1_36.default"
    assert [rule.name for rule in profile.predicates] == [each.name for each in MULTI_POINT if each.predicate]
    assert [(entry.score.name, entry.weight) for entry in profile.scores] == [
        (each.name, each.weight) for each in MULTI_POINT if each.score
    ]
    assert body("{}") == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "{plugins: {multiPoint: {disabled: [{name: InterPodAffinity}]}}}",
            ["disable predicate InterPodAffinity", "disable score InterPodAffinity"],
        ),
        # A rule that filters and scores may do one of them.
        ("{plugins: {score: {disabled: [{name: NodeAffinity}]}}}", ["disable score NodeAffinity"]),
        (
            "{plugins: {filter: {disabled: [{name: NodeAffinity}]}}}",
            ["disable predicate NodeAffinity"],
        ),
        (
            "{plugins: {score: {enabled: [{name: TaintToleration, weight: 7}]}}}",
            ["reweight TaintToleration 7"],
        ),
        (
            "{plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}",
            ["disable preemption LowerPriority"],
        ),
        # Another order: the fewest rules move.
        (
            "{plugins: {filter: {enabled: [{name: NodeResourcesFit}, {name: NodeUnschedulable}]}}}",
            [
                "disable predicate NodeResourcesFit",
                "add predicate kubernetes.NodeResourcesFit before NodeUnschedulable",
            ],
        ),
        (
            "{plugins: {filter: {enabled: [{name: NodeName}], disabled: [{name: NodeName}]}}}",
            ["disable predicate NodeName", "add predicate kubernetes.NodeName after DynamicResources"],
        ),
        (
            "{plugins: {filter: {enabled: [{name: DynamicResources}, {name: VolumeBinding}]}}}",
            [
                "disable predicate VolumeBinding",
                "disable predicate DynamicResources",
                "add predicate plugins.DynamicResources before NodeUnschedulable",
                "add predicate plugins.VolumeBinding after DynamicResources",
            ],
        ),
        (
            "{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [a.b/c], ignoredResourceGroups: [d]}}]}",
            [
                'set NodeResourcesFit.ignoredResources = ["a.b/c"]',
                'set NodeResourcesFit.ignoredResourceGroups = ["d"]',
            ],
        ),
        (
            "{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated,"
            " resources: [{name: cpu, weight: 2}, {name: cpu}, {name: a.b/c, weight: 0}]}}}]}",
            [
                "disable score NodeResourcesFit",
                "add score most_allocated.NodeResourcesFit weight 1",
                'set NodeResourcesFit.resources = {"cpu": 3, "a.b/c": 1}',
            ],
        ),
        # Arguments of what does not run are nothing to say.
        (
            "{plugins: {multiPoint: {disabled: [{name: InterPodAffinity}, {name: DefaultPreemption}]}}, pluginConfig:"
            " [{name: InterPodAffinity, args: {hardPodAffinityWeight: 5}},"
            " {name: DefaultPreemption, args: {minCandidateNodesAbsolute: 5}}]}",
            [
                "disable preemption LowerPriority",
                "disable predicate InterPodAffinity",
                "disable score InterPodAffinity",
            ],
        ),
        (
            "{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 5,"
            " ignorePreferredTermsOfExistingPods: true}},"
            " {name: DefaultPreemption, args: {minCandidateNodesPercentage: 5, minCandidateNodesAbsolute: 100}},"
            " {name: NodeResourcesBalancedAllocation, args: {resources: [{name: memory}, {name: a.b/c}]}}]}",
            [
                "set InterPodAffinity.hardPodAffinityWeight = 5",
                "set InterPodAffinity.ignorePreferredTermsOfExistingPods = true",
                'set NodeResourcesBalancedAllocation.resources = ["memory", "a.b/c"]',
                "set LowerPriority.minCandidateNodesPercentage = 5",
            ],
        ),
        (
            "{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}]}",
            [
                "set PodTopologySpread.defaultConstraints = []",
                "set PodTopologySpread.systemDefaulted = false",
            ],
        ),
        (
            "{pluginConfig: [{name: NodeAffinity, args: {addedAffinity:"
            " {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:"
            " [{matchExpressions: [{key: a, operator: Exists}]}]},"
            " preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, preference:"
            " {matchFields: [{key: metadata.name, operator: In, values: [n]}]}}]}}}]}",
            [
                'set NodeAffinity.addedAffinity = [nodeTerm([nodeLabel("a", "Exists", [])])]',
                'set NodeAffinity.addedPreferences = [nodeTerm([nodeField("metadata.name", "In",',
                '["n"])]).weighing(3)]',
            ],
        ),
    ],
)
def test_what_a_profile_says(text: str, lines: list[str]) -> None:
    assert body(text) == lines


def test_order_follows_the_filter_point() -> None:
    text = "{filter: {enabled: [{name: NodePorts}, {name: VolumeZone}, {name: NodeName}], disabled: [{name: '*'}]}}"
    (profile,) = checked(convert(f"profiles: [{{plugins: {text}}}]"))
    assert [rule.name for rule in profile.predicates] == ["NodePorts", "VolumeZone", "NodeName"]


def test_queues_have_the_back_off() -> None:
    ungated = "plugins: {preEnqueue: {disabled: [{name: SchedulingGates}]}}"
    text = f"""
    podMaxBackoffSeconds: 60
    profiles:
    - schedulerName: a
    - schedulerName: b
      {ungated}
    """
    first, second = checked(convert(text))
    assert [each.span.text for each in first.queue.backoff or ()] == ['duration("1s")', 'duration("60s")']
    assert len(first.queue.admit) == 1 and second.queue.admit == ()
    converted = convert(f"profiles: [{{{ungated}}}]")
    (plain,) = checked(converted)
    assert plain.queue.name == "UngatedPrioritySort"
    assert "// kdsl: ignore[K0708]" in converted.text


def test_names_are_words() -> None:
    text = "profiles: [{schedulerName: a-b}, {schedulerName: a.b}, {schedulerName: '7'}, {schedulerName: in}]"
    converted = convert(text, "in.yaml")
    assert converted.profiles == ("_in.a_b", "_in.a_b_2", "_in._7", "_in._in")
    assert [profile.scheduler for profile in checked(converted)] == ["a-b", "a.b", "7", "in"]


def test_the_settings_are_a_configuration() -> None:
    text = convert("parallelism: 8\nprofiles: [{percentageOfNodesToScore: 30}]").settings_text("a.kdsl")
    assert set(yaml.safe_load(text)) == {
        "apiVersion",
        "kind",
        "rules",
        "profiles",
        "parallelism",
        "percentageOfNodesToScore",
    }
    read = read_configuration(Source("kdsl.yaml", text))
    assert read.configuration is not None, read.diagnostics
    assert (read.configuration.parallelism, read.configuration.percentage) == (8, 30)
    assert [each.text for each in read.configuration.profiles] == ["scheduler.default_scheduler"]


def test_percentages_that_differ_are_samples_of_the_profiles() -> None:
    text = (
        "percentageOfNodesToScore: 100\n"
        "profiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 5},"
        " {schedulerName: c, percentageOfNodesToScore: 0}]"
    )
    converted = convert(text)
    samples = [profile.sample for profile in checked(converted)]
    assert [each and each.count.span.text for each in samples] == [
        "kubernetes.enoughNodes(nodes, 100)",
        "kubernetes.enoughNodes(nodes, 5)",
        "enoughNodes(nodes, percentageOfNodesToScore)",
    ]
    # Else 100 percent, which finds all nodes in every profile, would be what the second one gets.
    assert "percentageOfNodesToScore" not in converted.settings


EXTENDERS = """
extenders:
- urlPrefix: http://10.0.0.1:8888/gpu/
  filterVerb: filter
  prioritizeVerb: score
  preemptVerb: preempt
  bindVerb: bind
  weight: 3
  httpTimeout: 1m30s
  nodeCacheCapable: true
  ignorable: true
  managedResources:
  - {name: example.com/gpu, ignoredByScheduler: true}
- urlPrefix: https://10.0.0.2
  filterVerb: filter
  enableHTTPS: true
  httpTimeout: 0s
  nodeCacheCapable: false
  tlsConfig: {caFile: /etc/ca.pem, serverName: ""}
- urlPrefix: http://nothing.asked
"""


def test_extenders_become_arguments_of_the_plugin_before_the_binder() -> None:
    converted = convert(EXTENDERS)
    read = read_configuration(Source("scheduler.config.yaml", converted.settings_text("scheduler.kdsl")))
    assert read.configuration is not None, read.diagnostics
    extender, binder = read.configuration.plugins or ()
    assert binder.name == "default-binder"
    assert import_plugin(extender.name, extender.args)[1] == ()
    first, second = extender.args["extenders"]
    assert first == {
        "urlPrefix": "http://10.0.0.1:8888/gpu/",
        "filterVerb": "filter",
        "prioritizeVerb": "score",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": 3,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": "1m30s",
        "managedResources": [{"name": "example.com/gpu"}],
    }
    assert second == {
        "urlPrefix": "https://10.0.0.2",
        "filterVerb": "filter",
        "enableHTTPS": True,
        "tlsConfig": {"caFile": "/etc/ca.pem"},
    }


@pytest.mark.parametrize(
    "extender",
    [
        {"filterVerb": "filter"},
        {"urlPrefix": "http://a"},
        {"urlPrefix": "ftp://a", "filterVerb": "f"},
        {"urlPrefix": "http://a", "prioritizeVerb": "p"},
        {"urlPrefix": "http://a", "filterVerb": "f", "httpTimeout": "5"},
        {"urlPrefix": "http://a", "filterVerb": "f", "ignoredByScheduler": True},
    ],
    ids=["no address", "no verb", "no http", "no weight", "no unit", "unknown key"],
)
def test_what_is_no_extender(extender: dict[str, object]) -> None:
    (misfit,) = import_plugin("Extender", {"extenders": [extender]})[1]
    assert misfit.code == "K1004"


def test_one_extender_binds() -> None:
    binding = {"urlPrefix": "http://a", "bindVerb": "b"}
    assert len(import_plugin("Extender", {"extenders": [binding, binding]})[1]) == 1
