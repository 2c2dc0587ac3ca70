"""The whole check: the shipped rules, order of diagnostics, digest."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import check_rules, check_text
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.check.model.types import BindingTime
from kdsl.check.views.view import time_of
from kdsl.lang.loader import load_sources

from .programs import ROOT, check, shipped


def test_the_shipped_rules_are_clean() -> None:
    result = check_rules([ROOT / "rules"])
    assert result.diagnostics == ()
    rules = result.rules
    assert rules is not None
    default = rules.profiles["kubernetes.v1_36.default"]
    assert {each.name: time_of(each.reads) for each in default.predicates if not each.plugin} == {
        "NodeUnschedulable": BindingTime.NODE,
        "NodeName": BindingTime.NODE,
        "TaintToleration": BindingTime.NODE,
        "NodeAffinity": BindingTime.NODE,
        "NodePorts": BindingTime.USAGE,
        "NodeResourcesFit": BindingTime.USAGE,
        "VolumeRestrictions": BindingTime.USAGE,
        "NodeVolumeLimits": BindingTime.USAGE,
        "VolumeZone": BindingTime.NODE,
        "PodTopologySpread": BindingTime.NODE,
        "InterPodAffinity": BindingTime.NODE,
    }
    packed = rules.profiles["policies.binpacking.binpacking"]
    assert packed.scheduler == "binpacking-scheduler"
    assert "MostAllocated" in [each.score.name for each in packed.scores]


def test_what_is_not_used_is_checked_too() -> None:
    result = check('predicate Unused { require node.nme == "" else "x" }\nfn unused(n: int): string = n\n')
    assert result.rules is None
    assert [diagnostic.code for diagnostic in result.diagnostics] == ["K0302", "K0203"]


def test_diagnostics_come_in_the_order_of_the_text() -> None:
    first = Source("b.kdsl", 'kdsl 1\npackage b\npredicate P { require x else "x" }\nfn f(): int = y\n')
    second = Source("a.kdsl", "kdsl 1\npackage a\nfn f(): int = z\n")
    result = check_program(load_sources([first, second]).program)
    assert [str(diagnostic.span) for diagnostic in result.diagnostics] == [
        "b.kdsl:3:23",
        "b.kdsl:4:15",
        "a.kdsl:3:15",
    ]


def test_a_broken_rule_does_not_make_its_profile_look_broken() -> None:
    text = """
    predicate Broken { param limit = 1 require node.nme == "" else "x" }
    queue Q { order by pod.priority }
    profile p { scheduler "s" queue Q predicates { Broken } }
    profile q extends p { scheduler "t" set Broken.limit = 2 }
    """
    assert [diagnostic.code for diagnostic in check(text).diagnostics] == ["K0302"]


def test_the_digest_follows_the_text() -> None:
    text = shipped().text.replace("package kubernetes.v1_36", "package mine")
    checked = [
        check_text(Path("x.kdsl"), each).rules for each in (text, text, text.replace("weight 3", "weight 4"))
    ]
    assert len({rules.digest for rules in checked if rules is not None}) == 2 and None not in checked


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ('["1"].first()', 'int(["1"].first().orValue("0"))'),
        ('pod.labels[?"a"]', 'int(pod.labels[?"a"].orValue("0"))'),
        (
            'pod.priority > 1 ? pod.labels[?"a"] : pod.labels[?"b"]',
            'int((pod.priority > 1 ? pod.labels[?"a"] : pod.labels[?"b"]).orValue("0"))',
        ),
        ("pod.name", "int(pod.name)"),
        ("pod.priority > 1", "pod.priority > 1 ? 100 : 0"),
    ],
)
def test_what_is_no_number_can_be_made_one(value: str, number: str) -> None:
    profile = 'queue Q { order by pod.priority }\nprofile p { scheduler "t" queue Q scores { S weight 1 } }'
    (found,) = check(f"score S {{ value {value} }}\n{profile}").diagnostics
    assert [fix.title for fix in found.fixes] == [f"write `{number}`"]


def test_a_name_belongs_to_the_declaration_of_its_kind() -> None:
    text = 'queue A { order by pod.priority }\npredicate A { require true else "x" }\n'
    profile = 'profile p { scheduler "s" queue A predicates { A } }\n'
    assert check(text + profile).diagnostics == ()


@pytest.mark.parametrize("name", ["", "a\\u001bb", "\\n"])
def test_a_scheduler_has_a_name_that_pods_can_ask_for(name: str) -> None:
    text = f'queue Q {{ order by pod.priority }}\nprofile p {{ scheduler "{name}" queue Q }}\n'
    (problem,) = check(text).diagnostics
    assert problem.code == "K0407" and "is no scheduler name" in problem.title
    assert problem.span is not None and problem.span.text == f'"{name}"'
