"""The composition root: which profiles and plugins an engine gets, and what is said where it gets none."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from kdsl.analysis.codes import CostCode
from kdsl.app import Settings, build_engine, check_rules, find_profile, hook_tables, narrowed, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import Severity
from kdsl.base.errors import InvalidInputError
from kdsl.base.span import Source
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.config.codes import ConfigCode
from kdsl.config.configuration import KdslConfiguration, Limits, load_configuration, read_configuration
from kdsl.configured import check_configuration, check_loaded
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.plan.router import ProfileRouter
from kdsl.rulebook import texts

ROOT = Path(__file__).parent.parent
TEAM = """kdsl 1
package team

import kubernetes.v1_36 as kubernetes

profile default extends kubernetes.default {
  scheduler "team"
}
"""


def checked(*paths: Path) -> RuleSet:
    result = check_rules(paths)
    assert result.rules is not None, result.diagnostics
    return result.rules


@pytest.fixture
def rules(tmp_path: Path) -> RuleSet:
    (tmp_path / "team.kdsl").write_text(TEAM)
    return checked(tmp_path)


def engine(rules: RuleSet, settings: Settings) -> Engine:
    cluster = ClusterCache()
    return build_engine(rules, cluster, MemoryBinder(cluster), ManualClock(), settings)


def outcomes(engine: Engine, *schedulers: str) -> list[tuple[str, Outcome]]:
    """Return profile and outcome of a pod of each scheduler, on a cluster without nodes."""
    pods = [PodInfo(name=name, namespace="n", uid=name, scheduler_name=name) for name in schedulers]
    with engine:
        decisions = {decision.pod: decision for decision in engine.decisions(pods)}
    return [(decisions[pod.key].profile, decisions[pod.key].outcome) for pod in pods]


def test_shipped_rules_are_relative_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert shipped_rules() == Path("rules")
    monkeypatch.chdir(tmp_path)
    assert shipped_rules() == ROOT / "rules"


def test_an_installed_package_has_the_rules_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kdsl" / "shipped_rules").mkdir(parents=True)
    monkeypatch.setattr(texts, "__file__", str(tmp_path / "kdsl" / "rulebook" / "texts.py"))
    assert shipped_rules() == tmp_path / "kdsl" / "shipped_rules"


def test_rules_given_twice_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "team.kdsl").write_text(TEAM)
    once, twice = check_rules([tmp_path]), check_rules([tmp_path, tmp_path, tmp_path / "team.kdsl"])
    assert once.rules is not None and twice.rules is not None
    assert (twice.files, twice.rules.digest) == (once.files, once.rules.digest)


def test_broken_rules_are_no_rules(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage a\npredicate {\n")
    result = check_rules([tmp_path])
    assert result.rules is None and result.diagnostics
    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage a\nparam x: nothing = 1\n")
    result = check_rules([tmp_path])
    assert result.rules is None and result.files == 1


def test_profiles_have_long_and_short_names(rules: RuleSet) -> None:
    assert find_profile(rules, "team.default").scheduler == "team"
    with pytest.raises(InvalidInputError) as several:
        find_profile(rules, "default")
    assert several.value.diagnostics[0].title == (
        "several profiles are called `default`: `kubernetes.v1_36.default`, `team.default`"
    )
    with pytest.raises(InvalidInputError) as none:
        find_profile(rules, "team.defalt")
    assert none.value.diagnostics[0].help == (
        "did you mean `team.default`?",
        "profiles: kubernetes.v1_36.default, team.default",
    )


def test_a_pod_gets_the_profile_of_its_scheduler(rules: RuleSet) -> None:
    found = outcomes(engine(rules, Settings()), "team", "default-scheduler", "other")
    assert found == [
        ("team.default", Outcome.UNSCHEDULABLE),
        ("kubernetes.v1_36.default", Outcome.UNSCHEDULABLE),
        ("", Outcome.SKIPPED),
    ]


def test_only_the_profiles_named_are_in_use(rules: RuleSet) -> None:
    found = outcomes(engine(rules, Settings(profiles=("team.default",))), "team", "default-scheduler")
    assert found == [("team.default", Outcome.UNSCHEDULABLE), ("", Outcome.SKIPPED)]


def test_a_forced_profile_takes_the_pods_of_every_scheduler(rules: RuleSet) -> None:
    forced = engine(rules, Settings(profile="team.default"))
    assert (
        outcomes(forced, "team", "default-scheduler", "other")
        == [("team.default", Outcome.UNSCHEDULABLE)] * 3
    )


@pytest.mark.parametrize(
    "limit, said",
    [
        (2, []),
        (1, [(CostCode.TOO_MANY_FILES, "there are 2 rule files, 1 are allowed", "limits.ruleFiles")]),
    ],
)
def test_a_configuration_limits_how_many_rule_files_there_are(
    rules: RuleSet, limit: int, said: list[tuple[str, str, str]]
) -> None:
    configuration = KdslConfiguration(limits=Limits(rule_files=limit))
    found = check_configuration(configuration, rules, files=2)
    assert [(each.code, each.title, each.where) for each in found] == said


@pytest.mark.parametrize(("percentage", "is_told"), [(0, False), (30, True), (100, False)])
def test_a_percentage_that_no_profile_reads_is_told(tmp_path: Path, percentage: int, is_told: bool) -> None:
    own = 'queue Q { order by pod.priority }\nprofile p { scheduler "s" queue Q sample nodes / 2 }\n'
    (tmp_path / "own.kdsl").write_text(f"kdsl 1\npackage own\n{own}")
    text = f"apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\npercentageOfNodesToScore: {percentage}\n"
    configuration = read_configuration(Source("kdsl.yaml", text)).configuration
    assert configuration is not None
    found = check_configuration(configuration, checked(tmp_path), files=1)
    places = [(each.code, each.severity, each.span and each.span.site) for each in found]
    assert places == ([(ConfigCode.NO_EFFECT, Severity.WARNING, "kdsl.yaml:3")] if is_told else [])


def test_a_percentage_that_a_profile_reads_is_fine(rules: RuleSet) -> None:
    assert check_configuration(KdslConfiguration(percentage=30), rules, files=1) == ()


@pytest.mark.parametrize(
    ("plugins", "is_told"),
    [
        ("[]", True),
        ("[{name: VolumeBinding}]", True),
        ("[{name: default-binder}]", False),
        ("[{name: nobody-has-this}]", False),
    ],
)
def test_plugins_without_a_binder_are_told(rules: RuleSet, plugins: str, is_told: bool) -> None:
    text = f"apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nplugins: {plugins}\n"
    configuration = read_configuration(Source("kdsl.yaml", text)).configuration
    assert configuration is not None
    found = [
        each
        for each in check_configuration(configuration, rules, files=1)
        if each.code == ConfigCode.NO_BINDER
    ]
    places = [(each.severity, each.title, str(each.span)) for each in found]
    title = "no plugin of this configuration binds pods: every pod stays pending"
    assert places == ([(Severity.WARNING, title, "kdsl.yaml:3:10")] if is_told else [])


def test_every_plugin_that_cannot_be_used_is_named(rules: RuleSet) -> None:
    settings = Settings(plugins={"default-bindr": {}, "default-binder": {"x": 1}})
    with pytest.raises(InvalidInputError) as error:
        engine(rules, settings)
    said = "\n".join(problem.title for problem in error.value.diagnostics)
    assert "`default-bindr`" in said and "`default-binder`" in said


def test_plugins_of_the_shipped_profile_take_part_where_it_places_them(tmp_path: Path) -> None:
    without = (
        'profile without extends default {\n  scheduler "without"\n  disable predicate VolumeBinding\n}\n'
    )
    (tmp_path / "team.kdsl").write_text(f"{TEAM}\n{without}")
    cluster = ClusterCache()
    context = PluginContext(MemoryBinder(cluster), ManualClock(), WaitingPods[Any]())
    # A configuration that lists plugins of its own need not list these.
    tables = hook_tables(checked(tmp_path), context, Settings(plugins={"default-binder": {}}))
    found = {table.profile: dict(table.reserves) for table in tables}
    assert "VolumeBinding" in found["team.default"]
    assert "VolumeBinding" not in found["team.without"]


@pytest.mark.parametrize("folder", ["rules", "examples/teams"])
def test_profiles_that_are_left_out_are_those_of_nobody(folder: str) -> None:
    found = checked(ROOT / "rules", ROOT / folder)
    names = {profile.scheduler for profile in found.profiles.values()} | {"of-somebody-else"}
    everybody = ProfileRouter(found, found.profiles)
    left_out = set()
    for name, namespace in itertools.product(names, ("default", "ml-a", "shop")):
        settings = narrowed(found, Settings(), {name})
        left_out |= found.profiles.keys() - set(settings.profiles)
        pod = PodInfo(name="p", namespace=namespace, scheduler_name=name)
        assert ProfileRouter(found, settings.profiles).profile_of(pod) == everybody.profile_of(pod)
    assert left_out


def test_mistakes_beside_keys_that_exclude_each_other(tmp_path: Path) -> None:
    """A folder that is not there is shown where the configuration names it."""
    path = tmp_path / "kdsl.yaml"
    head = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\n"
    path.write_text(
        f"{head}rules: {{paths: [gone]}}\nprofile: a\nprofiles: [b]\nplugins: [{{name: nobody}}]\n"
    )
    found = check_loaded(load_configuration(path)).diagnostics
    assert {(each.code, str(each.span).rpartition("kdsl.yaml:")[2]) for each in found} == {
        ("K1135", "5:1"),
        ("K0355", "3:17"),
        ("K1001", "6:18"),
    }
