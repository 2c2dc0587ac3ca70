"""Preemptions: what they hold, what each statement sees, how profiles take and change them."""

from __future__ import annotations

import pytest
from kdsl.base.span import Source
from kdsl.check.analyses.changes import compare_profiles
from kdsl.check.model.codes import CheckCode

from tests.check.programs import check, check_sources, findings, profile_of

_PROFILE = 'queue Q { order by pod.priority }\nprofile p { scheduler "t" queue Q preemption P }\n'
_WHOLE = """
  param most = 3
  eligible when onNominatedNode.size() == 0 else "no ${pod.name}"
  victim when victim.priority < pod.priority
  order by victim.priority desc
  let share = potentialNodes / most
  candidates share
  let worst = candidate.victims.map(v, v.priority).max()
  choose by candidate.violations, worst desc
"""


def test_a_preemption() -> None:
    preemption = profile_of(check(f"preemption P {{{_WHOLE}}}\n{_PROFILE}")).preemption
    assert preemption is not None
    assert (preemption.name, preemption.qualified) == ("P", "test.P")
    assert [param.variable.name for param in preemption.params] == ["most"]
    assert len(preemption.eligible) == 1
    assert preemption.victim.span.text == "victim.priority < pod.priority"
    assert [key.descending for key in preemption.order] == [True]
    assert preemption.candidates is not None and preemption.candidates.span.text == "share"
    assert [key.descending for key in preemption.choose] == [False, True]


def test_without_one_no_pod_makes_room() -> None:
    text = 'queue Q { order by pod.priority }\nprofile p { scheduler "t" queue Q }\n'
    assert profile_of(check(text)).preemption is None


@pytest.mark.parametrize(
    ("body", "code", "marked"),
    [
        ('eligible when victim.priority > 0 else "a"', CheckCode.NOT_HERE, "victim"),
        ('eligible when true else "${candidate.violations}"', CheckCode.NOT_HERE, "candidate"),
        ("victim when candidate.violations > 0", CheckCode.NOT_HERE, "candidate"),
        ("order by potentialNodes", CheckCode.NOT_HERE, "potentialNodes"),
        ("let v = victim.priority candidates v", CheckCode.NOT_HERE, "v"),
        ("choose by victim.priority", CheckCode.NOT_HERE, "victim"),
        ("choose by node.podCount", CheckCode.NOT_HERE, "node"),
        (
            "order by victim.priority / 2, 1 / victim.priority",
            CheckCode.UNFIT_SORT_KEY,
            "1 / victim.priority",
        ),
        ("choose by candidate.victims", CheckCode.UNFIT_SORT_KEY, "candidate.victims"),
        ("candidates 1.0", CheckCode.WRONG_TYPE, "1.0"),
        ("victim when true", CheckCode.WRITTEN_TWICE, "victim when true"),
    ],
)
def test_what_is_refused(body: str, code: CheckCode, marked: str) -> None:
    found = findings(f"preemption P {{ victim when false {body} }}\n{_PROFILE}")
    assert (code, marked) in found


def test_it_must_say_who_goes() -> None:
    assert findings(f"preemption P {{ candidates 1 }}\n{_PROFILE}") == [(CheckCode.INCOMPLETE, "P")]


def test_a_profile_takes_another_one_and_sets_its_parameters() -> None:
    text = f"""
      preemption P {{{_WHOLE}}}
      preemption Nobody {{ victim when false }}
      {_PROFILE}
      profile other extends p {{ scheduler "other" preemption Nobody }}
      profile tuned extends p {{ scheduler "tuned" set P.most = 7 }}
    """
    rules = check(text).rules
    assert rules is not None
    p, other, tuned = (rules.profiles[f"test.{name}"] for name in ("p", "other", "tuned"))
    assert other.preemption is not None and other.preemption.name == "Nobody"
    changes = {(each.what, each.before, each.after) for each in compare_profiles(p, other)}
    assert ("preemption", "test.P", "test.Nobody") in changes
    changes = {(each.what, each.before, each.after) for each in compare_profiles(p, tuned)}
    assert ("parameter P.most", "3", "7") in changes


def test_unknown_ones_are_named() -> None:
    assert findings(_PROFILE) == [(CheckCode.UNKNOWN_RULE, "P")]


@pytest.mark.parametrize("name", ["P", "test.P"])
def test_a_profile_does_without(name: str) -> None:
    text = f"""
      preemption P {{{_WHOLE}}}
      {_PROFILE}
      profile calm extends p {{ scheduler "calm" disable preemption {name} }}
      profile still extends calm {{ scheduler "still" }}
      profile again extends calm {{ scheduler "again" preemption P }}
    """
    checked = check(text)
    assert profile_of(checked).preemption is not None
    assert profile_of(checked, "test.calm").preemption is None
    assert profile_of(checked, "test.still").preemption is None
    assert profile_of(checked, "test.again").preemption is not None


@pytest.mark.parametrize("line", ["disable preemption Nobody", "disable preemption Other"])
def test_only_what_is_there_can_be_disabled(line: str) -> None:
    text = f"""
      preemption P {{{_WHOLE}}}
      preemption Other {{ victim when false }}
      {_PROFILE}
      profile calm extends p {{ scheduler "calm" {line} }}
    """
    assert [(code, text in line) for code, text in findings(text)] == [(CheckCode.UNKNOWN_RULE, True)]


@pytest.mark.parametrize("line", ["preemption Own", "set P.most = 7", "disable preemption P"])
def test_no_right_lets_a_team_change_it(line: str) -> None:
    platform = """kdsl 1
package platform
preemption P { param most = 1 victim when victim.priority < most }
queue Q { order by pod.priority }
profile p { scheduler "t" queue Q preemption P }
team ml {
  owns pod.namespace == "ml"
  files "ml/*.kdsl"
  may tighten, add predicates, add scores, reweight 0 to 10, disable predicates, disable scores
}
"""
    team = f"""kdsl 1
package ml
import platform
preemption Own {{ victim when true }}
profile m extends platform.p {{ {line} }}
"""
    result = check_sources(Source("platform.kdsl", platform), Source("ml/ml.kdsl", team))
    assert [each.code for each in result.diagnostics] == [CheckCode.NOT_GRANTED]


def test_a_value_with_much_space_is_shown_on_one_line() -> None:
    # A line break behind each run of spaces would have been looked for from every space of it.
    values = [
        f"preemption P {{{_WHOLE.replace('= 3', f'= {value}')}}}\n{_PROFILE}" for value in ("3", "(1\n  + 2)")
    ]
    spaces = " " * 100_000
    values.append(values[0].replace("= 3", f"= (1 +{spaces}2)"))
    plain, broken, wide = (profile_of(check(value)) for value in values)
    for other, shown in ((broken, "1 + 2"), (wide, f"1 +{spaces}2")):
        changes = {(each.what, each.before, each.after) for each in compare_profiles(plain, other)}
        assert ("parameter P.most", "3", shown) in changes
