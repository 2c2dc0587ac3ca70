"""How profiles are folded."""

from __future__ import annotations

from kdsl.base.diagnostic import Severity
from kdsl.base.span import Source
from kdsl.check.checker import CheckResult
from kdsl.check.model.rule_set import CheckedProfile
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Comprehension

from tests.check.programs import ROOT, check_sources, profile_of, rules_of, shipped

_RULES = """
predicate First { param limit = 1 require node.podCount < limit else "first" }
predicate Second { require node.podCount < 2 else "second" }
score Low { value 1 }
score High { param names: list(int) = [1] value names.sum() }
queue Fifo { order by pod.queuedAt }
"""


def _check(text: str, imports: str = "import kubernetes.v1_36 as kubernetes\n") -> CheckResult:
    return check_sources(Source("team.kdsl", f"kdsl 1\npackage team\n{imports}{_RULES}{text}"), shipped())


def _names(profile: CheckedProfile) -> list[str]:
    return [predicate.name for predicate in profile.predicates]


def test_a_root_profile_is_its_lists() -> None:
    text = """
    profile p {
      scheduler "s"
      queue Fifo
      predicates { Second First }
      scores { Low weight 3 High weight 1 }
    }
    """
    profile = profile_of(_check(text), "team.p")
    assert profile.scheduler == "s"
    assert profile.queue.qualified == "team.Fifo"
    assert _names(profile) == ["Second", "First"]
    assert [(each.score.name, each.weight) for each in profile.scores] == [("Low", 3), ("High", 1)]


def test_a_profile_changes_what_it_extends() -> None:
    text = """
    profile p extends kubernetes.default {
      scheduler "s"
      add predicate First before NodeName
      add predicate Second after First
      disable predicate kubernetes.NodePorts
      disable score ImageLocality
      add score Low weight 7
      reweight NodeAffinity 9
    }
    """
    result = _check(text)
    profile = profile_of(result, "team.p")
    assert _names(profile) == [
        "NodeUnschedulable",
        "First",
        "Second",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
    ]
    assert {each.score.name: each.weight for each in profile.scores} == {
        "TaintToleration": 3,
        "NodeAffinity": 9,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "Low": 7,
    }
    assert profile.queue.qualified == "kubernetes.v1_36.PrioritySort"
    base = profile_of(result, "kubernetes.v1_36.default")
    assert len(base.predicates) == 13 and len(base.scores) == 8


def test_set_changes_the_parameter_of_one_profile() -> None:
    text = """
    profile a { scheduler "a" queue Fifo predicates { First } scores { High weight 1 } }
    profile b extends a {
      scheduler "b"
      set First.limit = 5
      set High.names = [1, 2].map(x, x * 2)
    }
    """
    rules = rules_of(_check(text))
    first, second = rules.profiles["team.a"], rules.profiles["team.b"]
    assert first.predicates[0].params[0].value.span.text == "1"
    assert second.predicates[0].params[0].value.span.text == "5"
    assert second.predicates[0].params[0].variable == first.predicates[0].params[0].variable


def test_a_set_value_has_slots_behind_those_of_the_rule() -> None:
    text = """
    profile a { scheduler "a" queue Fifo scores { High weight 1 } }
    profile b extends a { scheduler "b" set High.names = [1, 2].map(x, x * 2) }
    """
    rules = rules_of(_check(text))
    plain, changed = (rules.profiles[name].scores[0].score for name in ("team.a", "team.b"))
    slots = [
        part.variables[0].slot for part in walk(changed.params[0].value) if isinstance(part, Comprehension)
    ]
    assert slots == [plain.slots]
    assert changed.slots == plain.slots + 1


def test_set_reaches_the_rule_that_has_the_parameter() -> None:
    text = (
        'profile p extends kubernetes.default { scheduler "s" set NodeResourcesFit.ignoredResources = ["x"] }'
    )
    profile = profile_of(_check(text), "team.p")
    fit = next(predicate for predicate in profile.predicates if predicate.name == "NodeResourcesFit")
    assert fit.params[0].value.span.text == '["x"]'


def test_set_reaches_the_predicate_and_the_score_of_one_name() -> None:
    text = """
    predicate Both { param limit = 1 require node.podCount < limit else "full" }
    score Both { param limit = 1 value limit }
    profile p extends kubernetes.default {
      scheduler "s"
      add predicate Both
      add score Both weight 1
      set Both.limit = 7
    }
    """
    profile = profile_of(_check(text), "team.p")
    rules = (*profile.predicates, *(each.score for each in profile.scores))
    both = [rule for rule in rules if rule.name == "Both"]
    assert [rule.params[0].value.span.text for rule in both] == ["7", "7"]


def test_an_import_without_as_goes_by_its_last_part() -> None:
    text = 'profile p extends v1_36.default { scheduler "s" add predicate First }'
    assert _names(profile_of(_check(text, "import kubernetes.v1_36\n"), "team.p"))[-1] == "First"


def test_functions_and_parameters_of_imported_packages() -> None:
    library = Source("lib.kdsl", "kdsl 1\npackage lib\nparam two = 2\nfn double_(n: int): int = n * two\n")
    user = Source(
        "user.kdsl",
        "kdsl 1\npackage user\nimport lib\n"
        'predicate P { require lib.double_(node.podCount) > lib.two else "no" }\n',
    )
    rules = rules_of(check_sources(user, library))
    assert set(rules.fns) == {"lib.double_"}


def test_a_tightening_is_of_the_predicate_that_it_names() -> None:
    text = """
    profile a extends kubernetes.default {
      scheduler "a"
      tighten NodeName { let n = node.podCount require n < 3 else "busy" }
    }
    profile b extends a {
      scheduler "b"
      tighten kubernetes.NodeName { require node.podCount < 2 else "busier" }
      add predicate First after NodeName
    }
    """
    rules = rules_of(_check(text))
    names = _names(rules.profiles["team.b"])
    predicate = rules.profiles["team.b"].predicates[names.index("NodeName")]
    assert [each.name for each in predicate.tightenings] == ["NodeName", "NodeName"]
    assert [each.qualified for each in predicate.tightenings] == [
        "team.a/NodeName",
        "team.b/kubernetes.NodeName",
    ]
    assert names[names.index("NodeName") + 1] == "First"
    assert len(rules.profiles["team.a"].predicates[names.index("NodeName")].tightenings) == 1


def test_a_profile_may_take_the_place_of_what_it_extends() -> None:
    ours = 'profile ours extends kubernetes.default { scheduler "default-scheduler" }'
    assert rules_of(_check(ours)).profiles["team.ours"].scheduler == "default-scheduler"
    below = f'{ours} profile more extends ours {{ scheduler "default-scheduler" }}'
    assert not _check(below).diagnostics
    both = ours + ours.replace("ours", "theirs")
    assert [each.code for each in _check(both).diagnostics] == ["K0406"]


def test_a_profile_of_an_unknown_base_takes_no_scheduler_name() -> None:
    """It may have been meant to take the place of that base: `kubernetes.default` with a slip."""
    text = 'profile p extends kubernetes.defalt { scheduler "default-scheduler" }'
    assert [each.code for each in _check(text).diagnostics] == ["K0307"]
    text += ' profile q extends p { scheduler "default-scheduler" }'
    assert [each.code for each in _check(text).diagnostics] == ["K0307"]


def test_parameters_of_files_are_not_set() -> None:
    library = Source("lib.kdsl", "kdsl 1\npackage lib\nfinal param fixed = 2\nparam free = 3\n")
    user = 'kdsl 1\npackage user\nimport lib\nimport kubernetes.v1_36 as k\nprofile p extends k.default { scheduler "p" set lib.fixed = 1 set lib.free = 1 }'
    result = check_sources(Source("user.kdsl", user), library, shipped())
    assert [each.code for each in result.diagnostics] == ["K0404", "K0409"]


def test_whether_all_predicates_are_asked_is_inherited() -> None:
    text = """
    profile base { scheduler "s" queue Fifo check all predicates { First } }
    profile heir extends base { scheduler "t" }
    profile other extends base { scheduler "u" check first }
    profile silent { scheduler "v" queue Fifo }
    """
    rules = rules_of(_check(text))
    names = ("base", "heir", "other", "silent")
    assert [rules.profiles[f"team.{name}"].check_all for name in names] == [True, True, False, False]


def test_check_is_said_once() -> None:
    result = _check('profile p { scheduler "s" queue Fifo check all check first }')
    assert [(each.code, each.span.text if each.span else "") for each in result.diagnostics] == [
        ("K0408", "check first")
    ]


def test_a_rule_of_a_package_that_is_not_imported() -> None:
    other = Source("other.kdsl", "kdsl 1\npackage far.away\nscore Distant { value 1 }\n")
    text = "kdsl 1\npackage near\nqueue Q { order by pod.priority }\n"
    profile = 'profile p { scheduler "s" queue Q scores { Distant weight 1 } }'
    (found,) = check_sources(Source("near.kdsl", text + profile), other).diagnostics
    assert found.title == "unknown score `Distant`"
    assert found.help == ("add the line `import far.away` and write `away.Distant`",)


def _with_nvidia(statements: str) -> CheckResult:
    imports = "import devices.nvidia\nimport kubernetes.v1_36 as kubernetes\n"
    profile = f'profile p {{ scheduler "s" queue Fifo devices nvidia.Nvidia {statements} }}'
    paths = (ROOT / "rules/devices").glob("*.kdsl")
    libraries = [Source(str(path), path.read_text("utf-8")) for path in paths]
    return check_sources(
        Source("team.kdsl", f"kdsl 1\npackage team\n{imports}{_RULES}{profile}"), shipped(), *libraries
    )


def test_a_parameter_of_a_device_is_not_set_in_a_profile() -> None:
    (found,) = _with_nvidia("set Nvidia.sharesInstances = true").diagnostics
    assert found.title == "the profile has no rule `Nvidia`"
    assert (
        "a device of your own: `device Own extends nvidia.Nvidia { set sharesInstances = … }`"
        in found.help[0]
    )


def test_a_mistyped_card_policy() -> None:
    (found,) = _with_nvidia('set Devices.cardPolicy = "numa,topolgy-aware"').diagnostics
    assert (found.code, found.severity) == ("K0403", Severity.WARNING)
    assert found.help == ("did you mean `topology-aware`?",)
    assert found.title.endswith(": they leave it out")
    (found,) = _with_nvidia('set Devices.cardPolicy = " binpack"').diagnostics
    assert found.title.endswith(": to them it means `spread`")
    # Devices trim the words of a list.
    for policy in ("numa,binpack", "numa, binpack", "a-word-of-my-own-device"):
        assert not _with_nvidia(f'set Devices.cardPolicy = "{policy}"').diagnostics
