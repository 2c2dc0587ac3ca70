"""Reading KubeSchedulerConfigurations: what is refused, what is warned of, and where that stands."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import pytest
from kdsl.base.diagnostic import Severity
from kdsl.base.span import Source
from kdsl.config import misfits
from kdsl.config.kube_scheduler import KubeSchedulerResult, read_kube_scheduler
from kdsl.lang.yaml_tree import YamlNode

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> KubeSchedulerResult:
    return read_kube_scheduler(Source("scheduler.yaml", HEADER + textwrap.dedent(text)))


def args(plugin: str, text: str) -> str:
    return f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {text}}}]}}]"


def titles(result: KubeSchedulerResult, severity: Severity = Severity.ERROR) -> list[str]:
    return [each.title for each in result.diagnostics if each.severity is severity]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "profiles:\n",
        "profiles: [{plugins: null, pluginConfig: null}]",
        "leaderElection: {leaderElect: false, resourceLock: endpoints}",
        "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 50, burst: 100}",
        "profiles: [{plugins: {score: {disabled: [{name: '*'}]}}}]",
        args(
            "NodeResourcesFit",
            "{ignoredResources: [example.com/a], scoringStrategy: {resources: [{name: cpu}]}}",
        ),
        args("PodTopologySpread", "{defaultingType: List, defaultConstraints: []}"),
        args("DynamicResources", "{filterTimeout: 10s, bindingTimeout: 10m}"),
        args("GangScheduling", "{whatever: 1}"),
    ],
)
def test_what_is_fine(text: str) -> None:
    result = read(text)
    assert result.diagnostics == ()
    assert result.configuration is not None


@pytest.mark.parametrize(
    ("text", "title", "there"),
    [
        ("parallelism: 0", "`parallelism` must be at least 1", "0"),
        ("percentageOfNodesToScore: 101", "`percentageOfNodesToScore` must be at most 100", "101"),
        (
            "podInitialBackoffSeconds: 20",
            "podMaxBackoffSeconds (10) is less than podInitialBackoffSeconds (20)",
            "20",
        ),
        (
            "leaderElection: {resourceLock: endpoints}",
            "leaders are elected by `leases` only",
            "endpoints",
        ),
        ("profile: []", "unknown key `profile`", "profile"),
        (
            "profiles: [{schedulerName: a}, {}]",
            "`profiles[1]` has no schedulerName: only a profile that is alone needs none",
            "{}",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "two profiles are for scheduler name `a`",
            "a",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: Coscheduling}]}}}]",
            "unknown plugin `Coscheduling`",
            "Coscheduling",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]",
            "plugin `EBSLimits` was removed from kube-scheduler",
            "EBSLimits",
        ),
        (
            "profiles: [{plugins: {permit: {enabled: [{name: GangScheduling}]}}}]",
            "plugin `GangScheduling` is behind a feature gate of kube-scheduler; kdsl has nothing for it",
            "GangScheduling",
        ),
        (args("CinderLimits", "{}"), "plugin `CinderLimits` was removed from kube-scheduler", "CinderLimits"),
        (
            "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]",
            "the profile has no plugin at `queueSort`: exactly one is needed",
            "{queueSort: {disabled: [{name: '*'}]}}",
        ),
        (
            "profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}]}}}]",
            "the profile has no plugin at `bind`: at least one is needed",
            "{bind: {disabled: [{name: DefaultBinder}]}}",
        ),
        (
            "profiles: [{pluginConfig: [{name: VolumeBinding}, {name: VolumeBinding}]}]",
            "plugin `VolumeBinding` is configured twice",
            "VolumeBinding",
        ),
        (
            args("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"),
            "minCandidateNodesPercentage and minCandidateNodesAbsolute are both 0: no node would be a candidate",
            "0",
        ),
        (
            args("NodeResourcesFit", "{ignoredResourceGroups: [example.com/a]}"),
            "`profiles[0].pluginConfig[0].args.ignoredResourceGroups[0]` does not have the form that is needed here",
            "example.com/a",
        ),
        (
            args("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}"),
            "`RequestedToCapacityRatio` needs a shape of at least one point",
            "{type: RequestedToCapacityRatio}",
        ),
        (
            args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: cpu}]}"),
            "`resources` holds `cpu` twice",
            "{name: cpu}",
        ),
        (
            args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}"),
            "`profiles[0].pluginConfig[0].args.resources[0].weight` must be at most 1",
            "2",
        ),
        (
            args(
                "PodTopologySpread",
                "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            ),
            "defaultConstraints need `defaultingType: List`: with `System` they are the system's",
            "[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]",
        ),
        (
            args("DynamicResources", "{bindingTimeout: 500ms}"),
            "`bindingTimeout` must be at least 1s",
            "500ms",
        ),
        (
            "extenders: [{prioritizeVerb: score}]",
            "extender 0 has a prioritizeVerb and no weight",
            "score",
        ),
        ("extenders: [{bindVerb: a}, {bindVerb: b}]", "2 extenders bind: one may", "b"),
        (
            "extenders: [{managedResources: [{name: a.b/c}, {name: a.b/c}]}]",
            "resource `a.b/c` is managed twice",
            "a.b/c",
        ),
    ],
)
def test_what_is_refused(text: str, title: str, there: str) -> None:
    result = read(text)
    assert result.configuration is None
    errors = [each for each in result.diagnostics if each.is_error]
    assert [each.title for each in errors] == [title]
    assert errors[0].span is not None
    assert errors[0].span.text == there


@pytest.mark.parametrize(
    ("operator", "values", "fault"),
    [
        ("In", "[]", "needs values"),
        ("NotIn", "['a b']", "needs values that labels can have"),
        ("Exists", "[a]", "takes no values"),
        ("Gt", "[a]", "needs one value, a whole number"),
        ("Lt", "['1', '2']", "needs one value, a whole number"),
    ],
)
def test_requirements_of_added_affinity(operator: str, values: str, fault: str) -> None:
    term = f"{{matchExpressions: [{{key: disk, operator: {operator}, values: {values}}}]}}"
    required = f"{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}}}"
    preferred = f"{{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, preference: {term}}}]}}"
    for affinity in (required, preferred):
        assert titles(read(args("NodeAffinity", f"{{addedAffinity: {affinity}}}"))) == [
            f"operator `{operator}` {fault}"
        ]


def test_all_at_once() -> None:
    text = """
    parallelism: 0
    profiles:
    - plugins:
        filter: {enabled: [{name: NodeNmae}, {name: NodePorts, weight: x}]}
      pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101, hard: 1}}]
    """
    assert sorted(titles(read(text))) == [
        "`parallelism` must be at least 1",
        "`profiles[0].pluginConfig[0].args.hardPodAffinityWeight` must be at most 100",
        "`profiles[0].plugins.filter.enabled[1].weight` must be a whole number",
        "unknown key `profiles[0].pluginConfig[0].args.hard`",
        "unknown plugin `NodeNmae`",
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "profiles: [{plugins: {score: {disabled: [{name: NodeResourceFit}]}}}]",
            "there is no plugin `NodeResourceFit` to disable",
        ),
        (
            args("Coscheduling", "{}"),
            "arguments for plugin `Coscheduling` are not used: kdsl does not have it",
        ),
        (
            "profiles: [{plugins: {preScore: {disabled: [{name: NodeAffinity}]}}}]",
            "enabled at `score` and not at `preScore`: `NodeAffinity`; one rule does both and is used whole",
        ),
        (
            "profiles: [{plugins: {filter: {disabled: [{name: NodeAffinity}]}}}]",
            "enabled at `preFilter` and not at `filter`: `NodeAffinity`; one rule does both and is left out",
        ),
        (
            "profiles: [{plugins: {reserve: {disabled: [{name: VolumeBinding}]}}}]",
            "`VolumeBinding` is enabled at `filter`: in kdsl it also runs at `reserve`",
        ),
        (
            "profiles: [{plugins: {multiPoint: {disabled: [{name: VolumeBinding}]},"
            " reserve: {enabled: [{name: VolumeBinding}]}, preBind: {enabled: [{name: VolumeBinding}]}}}]",
            "`VolumeBinding` is not enabled at `filter`: in kdsl it does not run at `reserve`, `preBind`",
        ),
        (
            "profiles: [{plugins: {filter: {enabled: [{name: NodeDeclaredFeatures}]}}}]",
            "kdsl has no rule for plugin `NodeDeclaredFeatures`",
        ),
        (
            args("VolumeBinding", "{bindTimeoutSeconds: 60}"),
            "`bindTimeoutSeconds` of VolumeBinding is not used: kdsl waits for nothing there",
        ),
        (
            "extenders: [{filterVerb: filter}]",
            "an extender has no urlPrefix: it is left out",
        ),
        (
            "extenders: [{urlPrefix: '127.0.0.1:1', bindVerb: bind}]",
            "an extender cannot be asked at `127.0.0.1:1`: it is left out",
        ),
    ],
)
def test_what_is_lost_is_said(text: str, title: str) -> None:
    result = read(text)
    assert result.configuration is not None, result.diagnostics
    assert titles(result, Severity.WARNING) == [title]


def test_what_extenders_look_at_is_ignored() -> None:
    resources = "[{name: example.com/a, ignoredByScheduler: true}, {name: example.com/b}]"
    result = read(
        f"extenders: [{{managedResources: {resources}}}]\n"
        + args(
            "NodeResourcesFit", "{ignoredResources: [example.com/c], ignoredResourceGroups: [example.org]}"
        )
    )
    assert result.configuration is not None, result.diagnostics
    assert result.configuration.profiles[0].arguments.of("NodeResourcesFit") == {
        "ignoredResources": ["example.com/a"],
        "ignoredResourceGroups": ["example.org"],
    }


def test_it_is_one_document() -> None:
    two = read("---\na: 1\n")
    assert titles(two) == ["`scheduler.yaml` holds 2 documents: a configuration is one"]


def test_what_is_missing_is_said_beside_a_value_that_does_not_fit() -> None:
    """A value that was left out is not missing, in its own part; elsewhere the error is certain."""
    found = read(
        """\
        podInitialBackoffSeconds: 30
        extenders:
        - {urlPrefix: "http://127.0.0.1:1", prioritizeVerb: p, weight: five}
        - {urlPrefix: "http://127.0.0.1:1", prioritizeVerb: p, bindVerb: b}
        - {urlPrefix: "http://127.0.0.1:1", bindVerb: b}
        profiles:
        - {schedulerName: a, plugins: {queueSort: {disabled: [{name: PrioritySort}], enabled: 3}}}
        - plugins: {bind: {disabled: [{name: DefaultBinder}]}}
        """
    )
    assert titles(found) == [
        "podMaxBackoffSeconds (10) is less than podInitialBackoffSeconds (30)",
        "`extenders[0].weight` must be a whole number",
        "extender 1 has a prioritizeVerb and no weight",
        "2 extenders bind: one may",
        "`profiles[0].plugins.queueSort.enabled` must be a list",
        "`profiles[1]` has no schedulerName: only a profile that is alone needs none",
        "the profile has no plugin at `bind`: at least one is needed",
    ]


def test_what_is_missing_is_said_beside_a_value_of_the_same_profile_that_does_not_fit() -> None:
    found = read(
        """\
        profiles:
        - percentageOfNodesToScore: 300
          plugins: {bind: {disabled: [{name: DefaultBinder}]}}
          pluginConfig:
          - {name: InterPodAffinity, args: {hardPodAffinityWeight: many}}
          - {name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio}}}
        - {schedulerName: 3}
        """
    )
    assert titles(found) == [
        "`profiles[0]` has no schedulerName: only a profile that is alone needs none",
        "`profiles[0].percentageOfNodesToScore` must be at most 100",
        "the profile has no plugin at `bind`: at least one is needed",
        "`profiles[0].pluginConfig[0].args.hardPodAffinityWeight` must be a whole number",
        "`RequestedToCapacityRatio` needs a shape of at least one point",
        "`profiles[1].schedulerName` must be text",
    ]


def test_another_version_hides_no_other_mistake() -> None:
    text = f"{HEADER.replace('/v1', '/v1beta3')}profiles: [{{plugins: {{score: {{enabled: [{{name: Our}}]}}}}}}]\n"
    assert titles(read_kube_scheduler(Source("scheduler.yaml", text))) == [
        "`apiVersion` must be `kubescheduler.config.k8s.io/v1`",
        "unknown plugin `Our`",
    ]


def test_a_form_is_shown_by_an_example() -> None:
    found = read("extenders: [{managedResources: [{name: fpga}]}]").diagnostics
    assert [(each.title, each.help) for each in found] == [
        (
            "`extenders[0].managedResources[0].name` does not have the form that is needed here",
            ("write it like `example.com/fpga`",),
        )
    ]


_SHAPELESS = "`RequestedToCapacityRatio` needs a shape of at least one point"
_LIST = "defaultConstraints need `defaultingType: List`: with `System` they are the system's"
_CONSTRAINTS = "defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]"


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        (
            "NodeResourcesFit",
            "{ignoredResources: x, scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: 5}], odd: 1}}",
            ["args.ignoredResources` must be", "resources[0].name` must be", "unknown key", _SHAPELESS],
        ),
        # The value that does not fit may be the one that seems to be missing.
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: 5}}",
            ["requestedToCapacityRatio` must be"],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [x]}}}",
            ["shape[0]` must be"],
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shap: []}}}",
            ["unknown key"],
        ),
        ("PodTopologySpread", f"{{odd: 1, {_CONSTRAINTS}}}", ["unknown key", _LIST]),
        (
            "PodTopologySpread",
            f"{{defaultingType: list, {_CONSTRAINTS}}}",
            ["defaultingType` must be one of"],
        ),
    ],
)
def test_what_is_missing_is_said_beside_an_argument_that_does_not_fit(
    plugin: str, args: str, expected: list[str]
) -> None:
    found = titles(read(f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]"))
    assert len(found) == len(expected)
    assert all(any(each in title for title in found) for each in expected)


@pytest.mark.parametrize(
    ("extender", "expected"),
    [
        ("{urlPrefix: 5, prioritizeVerb: p}", ["extender 0 has a prioritizeVerb", "urlPrefix` must be text"]),
        ("{urlPrefix: 'http://a', prioritizeVerb: p, wieght: 2}", ["unknown key"]),
        (
            "{urlPrefix: 'http://a', prioritizeVerb: p, odd: 2}",
            ["extender 0 has a prioritizeVerb", "unknown key"],
        ),
    ],
)
def test_a_missing_weight_is_said_beside_a_value_that_does_not_fit(
    extender: str, expected: list[str]
) -> None:
    found = titles(read(f"extenders: [{extender}]"))
    assert len(found) == len(expected)
    assert all(any(each in title for title in found) for each in expected)


@pytest.mark.parametrize(
    ("body", "help_"),
    [
        ('parallelism: "16"', ("write `16` without quotes",)),
        (
            "profiles: [{plugins: {score: {disabled: ['*']}}}]",
            ('write `{name: "*"}`',),
        ),
        ("profiles: [{plugins: {score: {disabled: 'yes'}}}]", ('a list of one is written `["yes"]`',)),
        ('parallelism: "16.5"', ()),
        ("percentageOfNodesToScore: 50%", ("write `50` without the `%`",)),
        ("leaderElection: {leaderElect: yes}", ("write `true`, without quotes",)),
        ('leaderElection: {leaderElect: "False"}', ("write `false`, without quotes",)),
        ("leaderElection: {leaderElect: maybe}", ()),
        (
            "profiles: [{plugins: {filter: {enabled: [NodeAffinity]}}}]",
            ("write `{name: NodeAffinity}`",),
        ),
    ],
)
def test_a_text_in_place_of_another_value_is_shown_without_its_quotes(
    body: str, help_: tuple[str, ...]
) -> None:
    assert [each.help for each in read(body).diagnostics] == [help_]


def test_what_does_not_fit_is_found_in_a_time_in_proportion_to_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0
    inner = misfits._inner

    def counted(node: YamlNode) -> Iterable[YamlNode]:
        nonlocal asked
        asked += 1
        return inner(node)

    monkeypatch.setattr(misfits, "_inner", counted)
    calls = []
    for extenders in (20, 80):
        asked = 0
        read("extenders:\n" + "- {urlPrefix: http://a, filterVerb: f, weight: bad}\n" * extenders)
        calls.append(asked)
    assert calls[1] < 5 * calls[0]
