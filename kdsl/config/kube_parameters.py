"""The arguments of kube-scheduler's plugins as parameters of rules, where they differ from the defaults."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kdsl.config.kube_arguments import DEFAULT_RESOURCES, Arguments

Parameters = dict[tuple[str, str], str]
"""Values in the notation of rule files, by rule and parameter."""


def parameters(
    arguments: Arguments, *, filters: Collection[str], scores: Collection[str], preempts: bool
) -> Parameters:
    """Return the parameters to set in a profile where these plugins filter, score and preempt."""
    found: Parameters = {}
    for plugin, plugins, write in (
        ("NodeAffinity", filters, _added_affinity),
        ("NodeAffinity", scores, _added_preferences),
        ("NodeResourcesFit", filters, _ignored),
        ("NodeResourcesFit", scores, _scoring),
        ("PodTopologySpread", (*filters, *scores), _default_constraints),
        ("PodTopologySpread", scores, _defaulted),
        ("InterPodAffinity", scores, _inter_pod),
        ("NodeResourcesBalancedAllocation", scores, _balanced),
    ):
        if plugin in plugins:
            found.update(write(arguments))
    if preempts:
        found.update(_preemption(arguments))
    return found


def _spell(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _listing(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


# ---- one plugin each ---------------------------------------------------------------------------------------


def _added_affinity(arguments: Arguments) -> Parameters:
    affinity = arguments.of("NodeAffinity").get("addedAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ())
    return {("NodeAffinity", "addedAffinity"): _listing(map(_node_term, terms))} if terms else {}


def _added_preferences(arguments: Arguments) -> Parameters:
    affinity = arguments.of("NodeAffinity").get("addedAffinity", {})
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    terms = [f"{_node_term(each['preference'])}.weighing({each['weight']})" for each in preferred]
    return {("NodeAffinity", "addedPreferences"): _listing(terms)} if terms else {}


def _node_term(term: Mapping[str, Any]) -> str:
    requirements = [
        f"{call}({_spell(each['key'])}, {_spell(each['operator'])}, {_spell(each.get('values', []))})"
        for call, key in (("nodeLabel", "matchExpressions"), ("nodeField", "matchFields"))
        for each in term.get(key, ())
    ]
    return f"nodeTerm({_listing(requirements)})"


def _ignored(arguments: Arguments) -> Parameters:
    args = arguments.of("NodeResourcesFit")
    keys = ("ignoredResources", "ignoredResourceGroups")
    return {("NodeResourcesFit", key): _spell(args[key]) for key in keys if args.get(key)}


def _scoring(arguments: Arguments) -> Parameters:
    found: Parameters = {}
    resources = arguments.fit_resources()
    if resources != DEFAULT_RESOURCES:
        found["NodeResourcesFit", "resources"] = _spell(resources)
    if arguments.strategy() == "RequestedToCapacityRatio":
        found["NodeResourcesFit", "shape"] = _spell(arguments.shape())
    return found


def _balanced(arguments: Arguments) -> Parameters:
    resources = arguments.balanced_resources()
    if set(resources) == set(DEFAULT_RESOURCES):
        return {}
    return {("NodeResourcesBalancedAllocation", "resources"): _spell(resources)}


def _inter_pod(arguments: Arguments) -> Parameters:
    args = arguments.of("InterPodAffinity")
    defaults = {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False}
    return {
        ("InterPodAffinity", key): _spell(args[key])
        for key, default in defaults.items()
        if args.get(key, default) != default
    }


def _default_constraints(arguments: Arguments) -> Parameters:
    if arguments.is_system_spread():
        return {}
    constraints = arguments.of("PodTopologySpread").get("defaultConstraints", ())
    return {("PodTopologySpread", "defaultConstraints"): _listing(map(_constraint, constraints))}


def _defaulted(arguments: Arguments) -> Parameters:
    return {} if arguments.is_system_spread() else {("PodTopologySpread", "systemDefaulted"): "false"}


def _constraint(spec: Mapping[str, Any]) -> str:
    key, action = _spell(spec["topologyKey"]), _spell(spec["whenUnsatisfiable"])
    text = f"spread({key}, {spec['maxSkew']}, {action})"
    for name, method in (
        ("minDomains", "withMinDomains"),
        ("nodeAffinityPolicy", "withNodeAffinityPolicy"),
        ("nodeTaintsPolicy", "withNodeTaintsPolicy"),
    ):
        if name in spec:
            text += f".{method}({_spell(spec[name])})"
    return text


def _preemption(arguments: Arguments) -> Parameters:
    args = arguments.of("DefaultPreemption")
    defaults = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}
    return {
        ("LowerPriority", key): _spell(args[key])
        for key, default in defaults.items()
        if args.get(key, default) != default
    }
