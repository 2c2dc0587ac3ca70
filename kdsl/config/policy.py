"""Reads a scheduling `Policy` v1, as kube-scheduler took it up to 1.18: its predicates and priorities.

Names with arguments are custom: the argument defines their behaviour. All custom names of one kind become one
rule with the arguments of all, as in kube-scheduler 1.17. Facts: pkg/scheduler/apis/config/legacy_types.go
and pkg/scheduler/framework/plugins/legacy_registry.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Label, did_you_mean, has_errors
from kdsl.base.span import Source, Span
from kdsl.config.codes import ConfigCode
from kdsl.config.kube_extenders import check_extenders, extender_arguments, ignored_by_scheduler
from kdsl.config.kube_scheduler import SKIP_OR_WRITE, fitting_document, skipped
from kdsl.config.misfits import node_at, place_of, places_of, unfit_keys
from kdsl.config.schema_files import read_schema
from kdsl.lang.yaml_tree import YamlNode, to_plain

POLICY: Final = "Policy"
ORDER: Final = (
    "CheckNodeCondition", "CheckNodeUnschedulable", "GeneralPredicates", "HostName", "PodFitsHostPorts",
    "MatchNodeSelector", "PodFitsResources", "NoDiskConflict", "PodToleratesNodeTaints",
    "PodToleratesNodeNoExecuteTaints", "CheckNodeLabelPresence", "CheckServiceAffinity", "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount", "MaxCSIVolumeCount", "MaxAzureDiskVolumeCount", "MaxCinderVolumeCount",
    "CheckVolumeBinding", "NoVolumeZoneConflict", "CheckNodeMemoryPressure", "CheckNodePIDPressure",
    "CheckNodeDiskPressure", "EvenPodsSpread", "MatchInterPodAffinity",
)  # fmt: skip
"""The order in which predicates run, whatever the order of the file."""
MANDATORY: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
"""The predicates that run even if the file does not name them."""
DEFAULT_PREDICATES: Final = (
    "CheckNodeUnschedulable", "GeneralPredicates", "NoDiskConflict", "PodToleratesNodeTaints",
    "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxCSIVolumeCount", "MaxAzureDiskVolumeCount",
    "CheckVolumeBinding", "NoVolumeZoneConflict", "MatchInterPodAffinity",
)  # fmt: skip
DEFAULT_PRIORITIES: Final = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
}
PRIORITIES: Final = (
    *DEFAULT_PRIORITIES, "MostRequestedPriority", "RequestedToCapacityRatioPriority", "EqualPriority",
    "ServiceSpreadingPriority", "EvenPodsSpreadPriority",
)  # fmt: skip
_ARGUED: Final = {"CheckNodeLabelPresence": "labelsPresence", "CheckServiceAffinity": "serviceAffinity"}
"""Predicates that do nothing without their argument."""
_ALIASES: Final = {
    "PodFitsPorts": "PodFitsHostPorts",
    "MaxCSIVolumeCountPred": "MaxCSIVolumeCount",
    "EvenPodsSpread": "EvenPodsSpreadPriority",
    "EqualPriorityMap": "EqualPriority",
}
_MAX_WEIGHT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Policy:
    """The content of a policy: predicates in their order, priorities with weights, and the arguments of both.

    `arguments` are by rule and parameter of `rules/kubernetes/classic.kdsl`; `extenders` are arguments of the
    plugin that calls them.
    """

    predicates: tuple[str, ...]
    priorities: Mapping[str, int]
    arguments: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    check_all: bool = False
    extenders: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """The policy, or None with the errors that explain why; warnings come with either."""

    policy: Policy | None
    diagnostics: tuple[Diagnostic, ...]


@cache
def policy_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (2020-12) of the policies that can be imported."""
    return read_schema("kdsl.config", "policy.v1")


def read_policy(source: Source, *, skips_unknown: bool = False) -> PolicyResult:
    """Read the text of a policy, JSON or YAML. Never raises.

    With `skips_unknown`, predicates and priorities without a counterpart in kdsl are left out, with a
    warning.
    """
    written, fitting, found = fitting_document(source, policy_schema(), "policy")
    if written is None or fitting is None:
        return PolicyResult(None, found)
    reader = _Reader(fitting, [each.span for each in found if each.span], written)
    policy = reader.policy()
    more = skipped(reader.found) if skips_unknown else reader.found
    diagnostics = sorted((*found, *more), key=lambda each: each.span.start if each.span else 0)
    return PolicyResult(None if has_errors(diagnostics) else policy, tuple(diagnostics))


def _as_today(extender: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an extender with the keys and units of a KubeSchedulerConfiguration."""
    timeout = {"httpTimeout": f"{extender['httpTimeout']}ns"} if "httpTimeout" in extender else {}
    return {**extender, "enableHTTPS": extender.get("enableHttps", False), **timeout}


class _Reader:
    """Reads a tree that fits the schema; `found` collects the other errors in it.

    `unfit` are the places of the values that did not fit and were left out, `written` is the tree with them.
    """

    def __init__(self, root: YamlNode, unfit: Sequence[Span], written: YamlNode) -> None:
        self._root, self._written = root, places_of(written)
        self._unfit = unfit
        self._values: Any = to_plain(root)
        self._arguments: dict[tuple[str, str], Any] = {}
        self.found: list[Diagnostic] = []

    def policy(self) -> Policy:
        values = self._values
        extenders = values.get("extenders", ())
        self.found += check_extenders(
            extenders,
            lambda *path: self._place("extenders", *path),
            lambda index: unfit_keys(self._written, node_at(self._root, ("extenders", index))),
        )
        predicates = self._predicates(values.get("predicates"))
        priorities = self._priorities(values.get("priorities"))
        ignored = ignored_by_scheduler(extenders)
        for rule in ("GeneralPredicates", "PodFitsResources"):
            if ignored and rule in predicates:
                self._arguments[rule, "ignoredResources"] = list(ignored)
        weight = values.get("hardPodAffinitySymmetricWeight") or 1
        if weight != 1 and "InterPodAffinityPriority" in priorities:
            self._arguments["InterPodAffinityPriority", "hardPodAffinityWeight"] = weight
        return Policy(
            predicates,
            priorities,
            self._arguments,
            values.get("alwaysCheckAllPredicates", False),
            extender_arguments([*map(_as_today, extenders)]),
        )

    # ---- predicates ----------------------------------------------------------------------------------------

    def _predicates(self, listed: Sequence[Mapping[str, Any]] | None) -> tuple[str, ...]:
        if listed is None:
            return DEFAULT_PREDICATES
        self._check_repeats("predicates", listed)
        chosen = set(MANDATORY)
        for index, each in enumerate(listed):
            if self._lost("predicates", index):
                continue
            name = self._predicate(each, self._place("predicates", index, "name"))
            chosen |= {name} if name else set()
        return tuple(name for name in ORDER if name in chosen)

    def _predicate(self, written: Mapping[str, Any], span: Span) -> str:
        """Return the name of a predicate and record its arguments; empty where the name is unknown."""
        match written.get("argument"):
            case {"serviceAffinity": {"labels": labels}}:
                self._append("CheckServiceAffinity", "labels", labels)
                return "CheckServiceAffinity"
            case {"labelsPresence": {"labels": labels, **rest}}:
                self._append(
                    "CheckNodeLabelPresence", "present" if rest.get("presence") else "absent", labels
                )
                return "CheckNodeLabelPresence"
        name = written["name"]
        name = _ALIASES.get(name, name) if name not in ORDER else name
        if name in _ARGUED:
            title = f"predicate `{name}` has no argument: it has nothing to check"
            help_ = (f"add `argument: {{{_ARGUED[name]}: …}}`",)
            self.found.append(Diagnostic(ConfigCode.MISSING_KEY, title, span, help=help_))
        return name if name in ORDER else self._unknown("predicate", written["name"], ORDER, span)

    # ---- priorities ----------------------------------------------------------------------------------------

    def _priorities(self, listed: Sequence[Mapping[str, Any]] | None) -> Mapping[str, int]:
        if listed is None:
            return DEFAULT_PRIORITIES
        self._check_repeats("priorities", listed)
        weights: dict[str, int] = {}
        first: dict[str, tuple[int, Span]] = {}
        for index, each in enumerate(listed):
            if self._lost("priorities", index):
                continue
            span, weight = self._place("priorities", index, "weight"), each["weight"]
            name = self._priority(index, each)
            if name in first and first[name][0] != weight:
                title = f"the priorities that become `{name}` have weights {first[name][0]} and {weight}"
                labels = (Label(first[name][1], "the first one is here"),)
                why = "they are one rule, whose weight is that of each times their number"
                self.found.append(
                    Diagnostic(
                        ConfigCode.CONFLICT, title, span, "another weight", secondary=labels, help=(why,)
                    )
                )
            if name:
                first.setdefault(name, (weight, span))
                weights[name] = min(weights.get(name, 0) + weight, _MAX_WEIGHT)
        return weights

    def _priority(self, index: int, written: Mapping[str, Any]) -> str:
        """Return the name of a priority and record its arguments; empty where the name is unknown."""
        match written.get("argument"):
            case {"serviceAntiAffinity": {"label": label}}:
                self._append("ServiceAntiAffinity", "labels", [label])
                return "ServiceAntiAffinity"
            case {"labelPreference": {"label": label, **rest}}:
                self._append("NodeLabelPriority", "present" if rest.get("presence") else "absent", [label])
                return "NodeLabelPriority"
            case {"requestedToCapacityRatioArguments": arguments}:
                self._shape(index, arguments)
                return "RequestedToCapacityRatioPriority"
        name = written["name"]
        name = name if name in PRIORITIES else _ALIASES.get(name, name)
        if name in PRIORITIES:
            return str(name)
        return self._unknown("priority", name, PRIORITIES, self._place("priorities", index, "name"))

    def _shape(self, index: int, arguments: Mapping[str, Any]) -> None:
        name = "RequestedToCapacityRatioPriority"
        path = ("priorities", index, "argument", "requestedToCapacityRatioArguments")
        if (name, "shape") in self._arguments:
            title = f"two priorities become `{name}`, which has one shape"
            self.found.append(
                Diagnostic(ConfigCode.LISTED_TWICE, title, self._place("priorities", index, "name"))
            )
            return
        points = [[each.get("utilization", 0), each.get("score", 0)] for each in arguments["shape"]]
        for at, (left, right) in enumerate(pairwise(points)):
            if left[0] >= right[0]:
                title = f"utilizations must rise: {right[0]} comes after {left[0]}"
                span = self._place(*path, "shape", at + 1)
                self.found.append(Diagnostic(ConfigCode.WRONG_VALUE, title, span))
        self._arguments[name, "shape"] = points
        weights = {each["name"]: each.get("weight") or 1 for each in arguments.get("resources", ())}
        if weights:
            self._arguments[name, "resources"] = weights

    # ---- both ----------------------------------------------------------------------------------------------

    def _check_repeats(self, key: str, listed: Sequence[Mapping[str, Any]]) -> None:
        first: dict[str, Span] = {}
        for index, each in enumerate(listed):
            span = self._place(key, index, "name")
            if each["name"] in first:
                title = f"`{each['name']}` is listed twice in `{key}`"
                labels = (Label(first[each["name"]], "the first one is here"),)
                self.found.append(Diagnostic(ConfigCode.LISTED_TWICE, title, span, secondary=labels))
            first.setdefault(each["name"], span)

    def _lost(self, key: str, index: int) -> bool:
        """Return whether part of an entry was left out, which may change the meaning of the rest."""
        entry = self._place(key, index)
        return any(each.begins_in(entry) for each in self._unfit)

    def _append(self, rule: str, param: str, values: Sequence[str]) -> None:
        known: list[str] = self._arguments.setdefault((rule, param), [])
        known += (each for each in values if each not in known)

    def _unknown(self, kind: str, name: str, known: Sequence[str], span: Span) -> str:
        help_ = did_you_mean(name, known) or (SKIP_OR_WRITE,)
        self.found.append(
            Diagnostic(
                ConfigCode.UNKNOWN_PLUGIN,
                f"unknown {kind} `{name}`",
                span,
                f"not a {kind} that kdsl has a rule for",
                help=help_,
            )
        )
        return ""

    def _place(self, *path: str | int) -> Span:
        return place_of(self._root, path)
