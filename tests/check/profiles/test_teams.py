"""Whose each file is, and what teams may and may not do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.globs import glob
from kdsl.base.span import Source
from kdsl.check.checker import CheckResult, check_program
from kdsl.check.model.codes import CheckCode
from kdsl.lang.loader import load_sources
from kdsl.lang.twin import convert

from tests.check.programs import found, rules_of

_PLATFORM = """
queue Q { admit when pod.schedulingGates.size() == 0 else "gated" order by pod.queuedAt }
predicate Small { param limit = 5 require node.podCount < limit else "full" }
predicate Extra { require node.podCount < 3 else "fuller" }
mandatory predicate Real { param least = 0 require node.podCount >= least else "no node" }
score Low { param factor = 1 value factor }
score High { value 2 }
profile base { scheduler "default-scheduler" queue Q predicates { Small Real } scores { Low weight 1 } }
"""
_RIGHTS = {
    "tighten": 'tighten Small { require node.podCount < 4 else "more" }',
    "add predicates": "add predicate platform.Extra",
    "add scores": "add score platform.High weight 3",
    "reweight 1 to 9": "reweight Low 9",
    "disable predicates": "disable predicate Small",
    "disable scores": "disable score Low",
}


def _check(
    statements: str, may: str = "", declarations: str = "", file: str = "teams/a/a.kdsl"
) -> CheckResult:
    grants = f"may {may}" if may else ""
    team = f'team a {{ owns pod.namespace == "a" files "teams/a/**.kdsl" {grants} }}'
    loaded = load_sources(
        [
            Source("platform/p.kdsl", f"kdsl 1\npackage platform\n{team}\n{_PLATFORM}"),
            Source(
                file,
                f"kdsl 1\npackage a\nimport platform\n{declarations}\n"
                f"profile a extends platform.base {{ {statements} }}",
            ),
            Source("teams/a/own.kdsl", "kdsl 1\npackage own"),
        ]
    )
    assert not loaded.diagnostics
    return check_program(loaded.program)


def _findings(*args: str) -> list[tuple[str, str]]:
    return [found(diagnostic) for diagnostic in _check(*args).diagnostics]


@pytest.mark.parametrize("right", _RIGHTS)
def test_a_statement_needs_its_right_and_no_other(right: str) -> None:
    statement = _RIGHTS[right]
    assert _findings(statement, right) == []
    others = ", ".join(each for each in _RIGHTS if each != right)
    result = _check(statement, others)
    (problem,) = result.diagnostics
    assert problem.code == CheckCode.NOT_GRANTED
    assert problem.secondary[0].span.text == f"may {others}"


@pytest.mark.parametrize("statement", ["check all", "check first"])
def test_which_predicates_are_asked_is_the_platforms_to_say(statement: str) -> None:
    (problem,) = _check(statement, ", ".join(_RIGHTS)).diagnostics
    assert problem.code == CheckCode.NOT_GRANTED
    assert problem.title == f"team `a` may not say `{statement}`"


def test_how_many_nodes_are_enough_is_the_platforms_to_say() -> None:
    (problem,) = _check("sample 10", ", ".join(_RIGHTS)).diagnostics
    assert problem.code == CheckCode.NOT_GRANTED
    assert problem.title == "team `a` may not say `sample`"


def test_nothing_is_granted_by_silence() -> None:
    result = _check(_RIGHTS["tighten"])
    (problem,) = result.diagnostics
    assert problem.secondary[0].text == "the team was granted nothing"


def test_a_team_profile_without_changes_needs_no_right() -> None:
    rules = rules_of(_check(""))
    profile = rules.profiles["a.a"]
    assert (profile.team, profile.extends, profile.scheduler) == ("a", "platform.base", "default-scheduler")
    (team,) = rules.teams
    assert (team.profile, team.priority) == ("a.a", 0)


def test_a_file_of_nobody_is_the_platforms() -> None:
    assert (
        rules_of(_check(_RIGHTS["tighten"] + ' scheduler "s"', file="else/a.kdsl")).profiles["a.a"].team == ""
    )


@pytest.mark.parametrize(
    ("statement", "right"),
    [("set Low.factor = 2", "reweight 1 to 9"), ("set Small.limit = 9", "disable predicates")],
)
def test_setting_a_parameter_of_the_platforms(statement: str, right: str) -> None:
    assert _findings(statement) == [(CheckCode.NOT_GRANTED, statement)]
    assert _findings(statement, right) == []


_OWN = 'predicate Mine { param limit = 1 require node.podCount < limit else "mine" } score S { param f = 1 value f }'


def test_what_a_team_added_is_its_own() -> None:
    adds = "add predicate Mine add score S weight 2"
    changes = "set Mine.limit = 3 set S.f = 4 reweight S 5"
    assert _findings(f"{adds} {changes}", "add predicates, add scores", _OWN) == []
    removes = "disable predicate Mine disable score S"
    assert _findings(f"{adds} {removes}", "add predicates, add scores", _OWN) == []


def test_weights_of_added_scores_keep_to_the_range() -> None:
    statement = "add score platform.High weight 10"
    assert _findings(statement, "add scores, reweight 1 to 9") == [(CheckCode.OUT_OF_RANGE, "10")]
    around = "disable score Low add score platform.Low weight 10"
    assert _findings(around, "add scores, disable scores, reweight 1 to 9")[0][0] == CheckCode.OUT_OF_RANGE


_TWICE = {
    "tighten": "`tighten Small { … }` adds conditions",
    "disable predicates": "`disable predicate Small` takes it out first",
    "reweight 1 to 9": "`reweight Low N` changes its weight",
    "disable scores": "`disable score Low` takes it out first",
}


@pytest.mark.parametrize(
    ("statement", "rights", "ways"),
    [
        ("add predicate platform.Small", [], []),
        ("add predicate platform.Small", ["disable scores", "tighten"], ["tighten"]),
        ("add predicate platform.Small", ["disable predicates"], ["disable predicates"]),
        ("add score platform.Low weight 1", [], []),
        ("add score platform.Low weight 1", ["disable predicates", "reweight 1 to 9"], ["reweight 1 to 9"]),
        (
            "add score platform.Low weight 1",
            ["reweight 1 to 9", "disable scores"],
            ["reweight 1 to 9", "disable scores"],
        ),
    ],
)
def test_a_second_rule_offers_what_the_team_may_write(
    statement: str, rights: list[str], ways: list[str]
) -> None:
    (problem,) = _check(statement, ", ".join((*rights, "add predicates", "add scores"))).diagnostics
    assert problem.code == CheckCode.USED_TWICE
    assert problem.help == ("; ".join((*(_TWICE[each] for each in ways), "remove this one")),)


def test_a_second_rule_beside_a_mandatory_one_or_its_own() -> None:
    everything = ", ".join(_RIGHTS)
    (problem,) = _check("add predicate platform.Real", everything).diagnostics
    assert problem.help == ("`tighten Real { … }` adds conditions; remove this one",)
    own = 'predicate Small { require node.podCount < 4 else "own" }'
    (problem,) = _check("add predicate Small", "add predicates", own).diagnostics
    assert problem.help == ("give this one another name",)
    # A rule that the profile itself adds is not changed, but written once.
    twice = "add predicate platform.Extra add predicate platform.Extra"
    (problem,) = _check(twice, everything).diagnostics
    assert problem.help == ("remove this one",)


@pytest.mark.parametrize("statement", ["set Small.limit = 9", "set Real.least = 9"])
def test_tighten_is_offered_to_those_who_may(statement: str) -> None:
    for may, offers in (("add scores", ()), ("add scores, tighten", ("to demand more, write `tighten`",))):
        (problem,) = _check(statement, may).diagnostics
        assert tuple(each.partition(":")[0] for each in problem.help) == offers


def test_a_weight_of_zero_offers_disable_to_those_who_may() -> None:
    for may, offers in (("", ""), (", disable scores", ", or taken out by `disable score`")):
        (problem,) = _check("add score platform.High weight 0", f"add scores{may}").diagnostics
        assert problem.help == (f"a score that shall not count is left out{offers}",)


@pytest.mark.parametrize(
    ("queue", "keeps"),
    [
        ('admit when pod.schedulingGates.size() == 0 else "other words" order by pod.name', True),
        (
            'admit when pod.name != "" else "b" admit when pod.schedulingGates.size()==0 else "a" order by pod.name',
            True,
        ),
        ("order by pod.name", False),
        ('admit when pod.schedulingGates.size() <= 1 else "gated" order by pod.name', False),
        ('let n = 1 admit when pod.schedulingGates.size() == 0 else "gated" order by n', True),
    ],
)
def test_a_queue_keeps_out_what_the_platforms_keeps_out(queue: str, keeps: bool) -> None:
    found_ = _findings("queue Mine", "", f"queue Mine {{ {queue} }}")
    assert found_ == ([] if keeps else [(CheckCode.LOST_ADMIT, "Mine")])


def test_a_condition_with_lets_is_kept_only_with_the_same_lets() -> None:
    platform = (
        'kdsl 1\npackage platform\nteam a { owns true files "teams/a/*.kdsl" }\n'
        'queue Q { let limit = 0 admit when pod.schedulingGates.size() <= limit else "no" order by pod.name }\n'
        'profile base { scheduler "default-scheduler" queue Q }\n'
    )
    for limit, expected in ((0, []), (9, [CheckCode.LOST_ADMIT])):
        team = (
            "kdsl 1\npackage a\nimport platform\n"
            f'queue M {{ let limit = {limit} admit when pod.schedulingGates.size() <= limit else "no" order by pod.uid }}\n'
            "profile a extends platform.base { queue M }\n"
        )
        loaded = load_sources([Source("platform/p.kdsl", platform), Source("teams/a/a.kdsl", team)])
        assert [each.code for each in check_program(loaded.program).diagnostics] == expected


def _titles(**files: str) -> list[Diagnostic]:
    sources = [Source(f"{name.replace('__', '/')}.kdsl", f"kdsl 1\n{text}") for name, text in files.items()]
    return list(check_program(load_sources(sources).program).diagnostics)


def test_two_teams_of_one_name() -> None:
    (problem,) = _titles(a="package a\nteam t { owns true }", b="package b\nteam t { owns false }")
    assert problem.title == "two teams are called `t`"


def test_rights_are_for_files() -> None:
    """Without `files` the team's files would be the platform's, which may do everything."""
    (problem,) = _titles(a="package a\nteam t { owns true may add predicates }")
    assert problem.title == "team `t` has rights, but no `files`"
    assert problem.span is not None and problem.span.text == "may add predicates"
    assert not _titles(a="package a\nteam t { owns true }")


def test_a_team_cannot_take_the_name_of_a_platforms_profile() -> None:
    (problem,) = _check('scheduler "default-scheduler"').diagnostics
    assert problem.code == CheckCode.SCHEDULER_TAKEN
    assert problem.help == ("leave `scheduler` out: pods of team `a` get a profile of the team without it",)


def test_a_further_profile_of_a_team_needs_a_name_of_its_own() -> None:
    (problem,) = _check("} profile further extends platform.base {").diagnostics
    assert problem.code == CheckCode.SCHEDULER_TAKEN
    assert problem.help == ('it is inherited: write a `scheduler "name"` of its own',)
    assert not _check('} profile further extends platform.base { scheduler "a-2"').diagnostics


def test_a_file_in_yaml_is_the_teams_as_well() -> None:
    team = 'kdsl 1\npackage p\nteam a { owns true files "a/**.kdsl" }'
    twin, _ = convert(Source("t.kdsl", "kdsl 1\npackage t\nteam u { owns true }"), to_twin=True)
    assert twin is not None
    loaded = load_sources([Source("p.kdsl", team), Source("a/t.kdsl.yaml", twin)])
    assert not loaded.diagnostics, loaded.diagnostics
    assert [each.code for each in check_program(loaded.program).diagnostics] == [CheckCode.PLATFORM_ONLY]


def test_the_pattern_counts_from_the_folder_or_the_one_above() -> None:
    team = 'package p\nteam a { owns true files "a/*.kdsl" }'
    below = _titles(x__p=team, x__a__t="package t\nteam u { owns false }")
    above = _titles(x__p=team, a__t="package t\nteam u { owns false }")
    elsewhere = _titles(x__p=team, y__a__t="package t\nteam u { owns false }")
    codes = [[each.code for each in found] for found in (below, above, elsewhere)]
    assert codes == [[CheckCode.PLATFORM_ONLY], [CheckCode.PLATFORM_ONLY], [CheckCode.TEAM_GRANT]]


_UNMATCHED = [
    # pattern, files beside `r/p/teams.kdsl`, what is meant where there is a file of such a name
    ("teams/mll/**.kdsl", ["r/teams/ml/x.kdsl"], "did you mean `teams/ml`?"),
    ("teams/ML/*.kdsl", ["r/teams/ml/x.kdsl"], "did you mean `teams/ml`?"),
    ("team/ml/**.kdsl", ["r/teams/ml/deep/x.kdsl"], "did you mean `teams/ml`?"),
    ("teams/ml/rule.kdsl", ["r/teams/ml/rules.kdsl"], "did you mean `teams/ml/rules.kdsl`?"),
    ("teams/new/**.kdsl", ["r/teams/ml/x.kdsl"], ""),
    ("teams/web/**.kdsl", ["r/teams/wet/owned.kdsl"], ""),
    ("teams/new-*.kdsl", ["r/teams/x.kdsl"], ""),
    ("pp/**.kdsl", ["r/p/x.kdsl"], ""),
    ("teams/new/**.kdsl", [], ""),
    ("teams/{a,b}/*.kdsl", [], "`{` stands for itself: a pattern has `*`, `**` and `?`"),
    ("teams/{a,b}/**", [], "`{` stands for itself: a pattern has `*`, `**` and `?`"),
    ("teams/[ab]/*.kdsl", [], "`[` stands for itself: a pattern has `*`, `**` and `?`"),
]


@pytest.mark.parametrize(("pattern", "files", "meant"), _UNMATCHED)
def test_a_pattern_without_a_file(pattern: str, files: list[str], meant: str) -> None:
    """It is an error: what was meant would be the platform's, or will be when it comes."""
    teams = f"""team a {{ owns pod.namespace == "a" files "{pattern}" }}
        team b {{ owns pod.namespace == "b" files "teams/wet/*.kdsl" }}"""
    sources = [Source("r/p/teams.kdsl", f"kdsl 1\npackage p\n{teams}")]
    sources += [
        Source(file, f"kdsl 1\npackage x{number}")
        for number, file in enumerate((*files, "r/teams/wet/w.kdsl"))
    ]
    (problem,) = check_program(load_sources(sources).program).diagnostics
    assert (problem.code, problem.title) == (
        CheckCode.TEAM_GRANT,
        f'the pattern "{pattern}" matches no rule file',
    )
    assert problem.severity is Severity.ERROR
    assert not meant or problem.help[-1] == meant


@pytest.mark.parametrize("pattern", ["/" * 50_000 + "x.kdsl", "*a" * 500 + "*.kdsl"])
def test_a_pattern_of_many_parts_takes_no_time(pattern: str) -> None:
    team = f'kdsl 1\npackage p\nteam a {{ owns true files "{pattern}" }}'
    sources = [Source("r/p/teams.kdsl", team), Source(f"r/{'a' * 200}/x.kdsl", "kdsl 1\npackage x")]
    problems = check_program(load_sources(sources).program).diagnostics
    assert CheckCode.TEAM_GRANT in {problem.code for problem in problems}


@pytest.mark.parametrize("files", ['files "team/a/*.kdsl"', ""])
def test_the_scheduler_name_of_a_team_that_lost_its_files_is_no_second_mistake(files: str) -> None:
    team = f'team a {{ owns pod.namespace == "a" {files} may tighten }}'

    def codes(file: str, scheduler: str = "") -> list[str]:
        extends = f"profile a extends platform.base {{ {scheduler} }}"
        sources = [
            Source("r/platform/p.kdsl", f"kdsl 1\npackage platform\n{team}\n{_PLATFORM}"),
            Source(file, f"kdsl 1\npackage a\nimport platform\n{extends}"),
        ]
        return [each.code for each in check_program(load_sources(sources).program).diagnostics]

    lost = CheckCode.TEAM_GRANT
    assert codes("r/teams/a/a.kdsl") == [lost]
    # A file beside the `team` block is the platform's; a name that the profile gives itself is nobody else's.
    assert codes("r/platform/a.kdsl") == [lost, CheckCode.SCHEDULER_TAKEN]
    two = 'scheduler "s" } profile b extends platform.base { scheduler "s"'
    assert codes("r/teams/a/a.kdsl", two) == [lost, CheckCode.SCHEDULER_TAKEN]


@pytest.mark.parametrize("imports", ["", "import lib.other"])
def test_a_team_cannot_name_a_package_like_one_of_a_library(imports: str) -> None:
    team = 'team a { owns true files "a/**.kdsl" }'

    def check(path: str) -> list[tuple[str, str]]:
        loaded = load_sources(
            [
                Source("p/p.kdsl", f"kdsl 1\npackage p\n{imports}\n{team}"),
                Source(path, "kdsl 1\npackage lib.scores\nscore S { value 1 }"),
                Source("a/first.kdsl", "kdsl 1\npackage a"),
            ],
            lambda: [
                [
                    Source("lib/scores.kdsl", "kdsl 1\npackage lib.scores\nscore S { value 2 }"),
                    Source("lib/other.kdsl", "kdsl 1\npackage lib.other"),
                ]
            ],
        )
        assert not loaded.diagnostics
        return [found(each) for each in check_program(loaded.program).diagnostics]

    assert check("a/a.kdsl") == [(CheckCode.TEAM_FILES, "lib.scores")]
    # What the platform puts in the place of a library is its own to say.
    assert check("p/a.kdsl") == []


@pytest.mark.parametrize(
    "pattern", ["../ml/*.kdsl", "/ml/*.kdsl", "./ml/*.kdsl", "ml//*.kdsl", "ml/*.yaml", "ml/"]
)
def test_patterns_that_match_nothing(pattern: str) -> None:
    (problem,) = _titles(p=f'package p\nteam a {{ owns true files "{pattern}" }}')
    assert (problem.code, problem.title) == (
        CheckCode.TEAM_GRANT,
        f'the pattern "{pattern}" matches no rule file',
    )
    if pattern == "ml/":
        assert problem.help == ('a pattern names files: write `"ml/*.kdsl"`',)


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        ("teams/ml/**.kdsl", ["teams/ml/a.kdsl", "teams/ml/b/c.kdsl"], ["teams/mlx/a.kdsl", "teams/ml.kdsl"]),
        ("teams/*/x.kdsl", ["teams/a/x.kdsl"], ["teams/a/b/x.kdsl", "teams/x.kdsl"]),
        ("**/x.kdsl", ["x.kdsl", "a/b/x.kdsl"], ["ax.kdsl"]),
        ("t?.kdsl", ["t1.kdsl"], ["t.kdsl", "t12.kdsl", "t/.kdsl"]),
        ("a.b+.kdsl", ["a.b+.kdsl"], ["axb+.kdsl", "a.bb.kdsl"]),
    ],
)
def test_patterns(pattern: str, matches: list[str], others: list[str]) -> None:
    assert [each for each in (*matches, *others) if glob(pattern).fullmatch(each)] == matches


@given(st.text(st.characters(exclude_characters="*?", exclude_categories=["Cs"]), max_size=20))
def test_a_pattern_without_stars_is_itself(path: str) -> None:
    assert glob(path).fullmatch(path)
    assert not glob(path).fullmatch(path + "x")
