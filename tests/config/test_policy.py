"""Policies: what is chosen, in which order, and everything that is wrong with one at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kdsl.app import check_text
from kdsl.base.span import Source
from kdsl.check.model.rule_set import CheckedProfile
from kdsl.config.imports import import_configuration
from kdsl.config.policy import DEFAULT_PREDICATES, DEFAULT_PRIORITIES, ORDER, PRIORITIES
from kdsl.lang.formatter import format_source


def imported(**keys: Any) -> CheckedProfile:
    """Convert a policy, check the rules that come out, and return their profile."""
    result = import_configuration(
        Source("policy.json", json.dumps({"apiVersion": "v1", "kind": "Policy", **keys}))
    )
    assert result.converted is not None and not result.diagnostics, result.diagnostics
    text = result.converted.text
    assert format_source(Source("a.kdsl", text)).text == text
    checked = check_text(Path("policy.kdsl"), text)
    assert checked.rules is not None and not checked.diagnostics, checked.diagnostics
    return checked.rules.profiles["policy.default_scheduler"]


def predicates(profile: CheckedProfile) -> list[str]:
    return [rule.name for rule in profile.predicates]


def scores(profile: CheckedProfile) -> dict[str, int]:
    return {entry.score.name: entry.weight for entry in profile.scores}


def params(profile: CheckedProfile, rule: str) -> dict[str, str]:
    found = {each.name: each.params for each in profile.predicates}
    found |= {entry.score.name: entry.score.params for entry in profile.scores}
    return {param.variable.name: param.value.span.text for param in found[rule]}


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def test_what_is_left_out_is_the_default() -> None:
    profile = imported()
    assert profile.scheduler == "default-scheduler"
    assert not profile.check_all
    places = {"CheckVolumeBinding": "VolumeBinding"}
    assert predicates(profile) == [places.get(name, name) for name in DEFAULT_PREDICATES]
    assert scores(profile) == DEFAULT_PRIORITIES


def test_what_is_empty_is_empty_but_for_the_mandatory() -> None:
    profile = imported(predicates=[], priorities=[])
    assert predicates(profile) == ["CheckNodeUnschedulable", "PodToleratesNodeTaints"]
    assert scores(profile) == {}


def test_predicates_run_in_the_fixed_order() -> None:
    plain = [name for name in ORDER if name not in ("CheckNodeLabelPresence", "CheckServiceAffinity")]
    places = {"CheckVolumeBinding": "VolumeBinding", "EvenPodsSpread": "PodTopologySpread"}
    profile = imported(predicates=named(*reversed(plain)), alwaysCheckAllPredicates=True)
    assert predicates(profile) == [places.get(name, name) for name in plain]
    assert profile.check_all


def test_every_priority_has_a_rule() -> None:
    profile = imported(priorities=[{"name": name, "weight": 3} for name in PRIORITIES])
    assert set(scores(profile)) == {*PRIORITIES} - {"EvenPodsSpreadPriority"} | {"PodTopologySpread"}
    assert set(scores(profile).values()) == {3}


def test_the_shipped_profiles_are_what_policies_choose_from() -> None:
    shipped = check_text(Path("a.kdsl"), "kdsl 1\npackage a\nimport kubernetes.classic\n").rules
    assert shipped is not None
    everything = shipped.profiles["kubernetes.classic.everything"]
    places = {"CheckVolumeBinding": "VolumeBinding", "EvenPodsSpread": "PodTopologySpread"}
    assert predicates(everything) == [places.get(name, name) for name in ORDER]
    default = shipped.profiles["kubernetes.classic.default_provider"]
    assert (predicates(default), scores(default)) == (predicates(imported()), scores(imported()))


@pytest.mark.parametrize(
    ("name", "rule"),
    [("PodFitsPorts", "PodFitsHostPorts"), ("MaxCSIVolumeCountPred", "MaxCSIVolumeCount")],
)
def test_old_names(name: str, rule: str) -> None:
    assert rule in predicates(imported(predicates=named(name)))


def test_arguments_of_predicates_of_a_kind_are_put_together() -> None:
    profile = imported(
        predicates=[
            {"name": "InRack", "argument": {"serviceAffinity": {"labels": ["rack"]}}},
            {"name": "InRow", "argument": {"serviceAffinity": {"labels": ["row", "rack"]}}},
            {"name": "HasDisk", "argument": {"labelsPresence": {"labels": ["disk"], "presence": True}}},
            {"name": "NotRetiring", "argument": {"labelsPresence": {"labels": ["retiring"]}}},
        ]
    )
    assert predicates(profile)[-2:] == ["CheckNodeLabelPresence", "CheckServiceAffinity"]
    assert params(profile, "CheckServiceAffinity") == {"labels": '["rack", "row"]'}
    assert params(profile, "CheckNodeLabelPresence") == {"present": '["disk"]', "absent": '["retiring"]'}


def test_priorities_of_a_kind_weigh_together() -> None:
    profile = imported(
        priorities=[
            {"name": "A", "weight": 2, "argument": {"labelPreference": {"label": "ssd", "presence": True}}},
            {"name": "B", "weight": 2, "argument": {"labelPreference": {"label": "old", "presence": False}}},
            {"name": "C", "weight": 5, "argument": {"serviceAntiAffinity": {"label": "rack"}}},
            {
                "name": "D",
                "weight": 1,
                "argument": {
                    "requestedToCapacityRatioArguments": {
                        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
                        "resources": [{"name": "example.com/foo", "weight": 5}, {"name": "cpu"}],
                    }
                },
            },
        ]
    )
    assert scores(profile) == {
        "NodeLabelPriority": 4,
        "ServiceAntiAffinity": 5,
        "RequestedToCapacityRatioPriority": 1,
    }
    assert params(profile, "NodeLabelPriority") == {"present": '["ssd"]', "absent": '["old"]'}
    assert params(profile, "ServiceAntiAffinity") == {"labels": '["rack"]'}
    assert params(profile, "RequestedToCapacityRatioPriority") == {
        "shape": "[[0, 0], [100, 10]]",
        "resources": '{"example.com/foo": 5, "cpu": 1}',
    }


def test_the_weight_of_required_affinity() -> None:
    assert params(imported(hardPodAffinitySymmetricWeight=7), "InterPodAffinityPriority") == {
        "hardPodAffinityWeight": "7"
    }


def test_what_extenders_look_at_is_ignored() -> None:
    text = json.dumps(
        {
            "kind": "Policy",
            "predicates": named("PodFitsResources"),
            "extenders": [
                {
                    "urlPrefix": "http://127.0.0.1:8888",
                    "filterVerb": "filter",
                    "managedResources": [{"name": "example.com/foo", "ignoredByScheduler": True}],
                }
            ],
        }
    )
    result = import_configuration(Source("policy.json", text))
    assert result.converted is not None
    assert 'set PodFitsResources.ignoredResources = ["example.com/foo"]' in result.converted.text
    assert result.diagnostics == ()


def test_extenders_are_written_as_they_are_today() -> None:
    extender = {
        "urlPrefix": "https://10.0.0.1/x", "prioritizeVerb": "prioritize", "weight": 2, "enableHttps": True,
        "httpTimeout": 1_500_000_000, "tlsConfig": {"insecure": True, "serverName": ""},
    }  # fmt: skip
    text = json.dumps({"kind": "Policy", "extenders": [extender]})
    converted = import_configuration(Source("policy.json", text)).converted
    assert converted is not None
    assert converted.settings["plugins"][0] == {
        "name": "Extender",
        "args": {
            "extenders": [
                {
                    "urlPrefix": "https://10.0.0.1/x",
                    "prioritizeVerb": "prioritize",
                    "weight": 2,
                    "enableHTTPS": True,
                    "httpTimeout": "1500000000ns",
                    "tlsConfig": {"insecure": True},
                }
            ]
        },
    }


BROKEN = """\
kind: Policy
predicates:
- name: PodFitsResource
- name: HostName
- name: HostName
- name: CheckServiceAffinity
- name: Custom
  argument: {labelsPresence: {labels: []}}
priorities:
- {name: LeastRequestedPriority, weight: 0}
- {name: ResourceLimitsPriority, weight: 1}
- {name: A, weight: 1, argument: {labelPreference: {label: a}}}
- {name: B, weight: 2, argument: {labelPreference: {label: b}}}
- name: Shape
  weight: 1
  argument: {requestedToCapacityRatioArguments: {shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}}
hardPodAffinitySymmetricWeight: 101
alwaysCheckAll: true
"""


def test_all_that_is_wrong_is_told_at_once() -> None:
    result = import_configuration(Source("policy.yaml", BROKEN))
    assert result.converted is None
    told = [(str(each.code), each.span.line if each.span else 0, each.title) for each in result.diagnostics]
    assert told == [
        ("K1137", 3, "unknown predicate `PodFitsResource`"),
        ("K1136", 5, "`HostName` is listed twice in `predicates`"),
        ("K1132", 6, "predicate `CheckServiceAffinity` has no argument: it has nothing to check"),
        ("K1134", 8, "`predicates[4].argument.labelsPresence.labels` is empty"),
        ("K1134", 10, "`priorities[0].weight` must be at least 1"),
        ("K1137", 11, "unknown priority `ResourceLimitsPriority`"),
        ("K1135", 13, "the priorities that become `NodeLabelPriority` have weights 1 and 2"),
        ("K1134", 16, "utilizations must rise: 50 comes after 50"),
        ("K1134", 17, "`hardPodAffinitySymmetricWeight` must be at most 100"),
        ("K1131", 18, "unknown key `alwaysCheckAll`"),
    ]


def test_a_weight_that_does_not_fit_is_not_missing() -> None:
    text = "extenders: [{urlPrefix: 'http://a', prioritizeVerb: p, weight: five}]\n"
    result = import_configuration(Source("policy.yaml", f"apiVersion: v1\nkind: Policy\n{text}"))
    assert [each.title for each in result.diagnostics] == ["`extenders[0].weight` must be a whole number"]
