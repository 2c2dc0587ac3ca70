"""Validation and defaults of the arguments of kube-scheduler's plugins, beyond their schema.

Facts of kube-scheduler: apis/config/v1/defaults.go and apis/config/validation/validation_pluginargs.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, nearest
from kdsl.base.span import Span
from kdsl.config.codes import ConfigCode

Place = Callable[..., Span]
"""Returns the place of the value at a path below some arguments."""
Json = Mapping[str, Any]

DEFAULT_RESOURCES: Final = {"cpu": 1, "memory": 1}
LEAST_ALLOCATED: Final = "LeastAllocated"
_SHAPED: Final = "RequestedToCapacityRatio"
_INT64: Final = range(-(2**63), 2**63)
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a profile's plugins, checked and with their defaults."""

    given: Mapping[str, Json]

    def of(self, plugin: str) -> Json:
        """Return the written arguments of a plugin; empty where there are none."""
        return self.given.get(plugin, {})

    def strategy(self) -> str:
        """Return the scoring strategy of NodeResourcesFit."""
        return str(self._scoring().get("type", LEAST_ALLOCATED))

    def fit_resources(self) -> dict[str, int]:
        """Return the weights of the resources that NodeResourcesFit compares."""
        return _weights(self._scoring().get("resources", ()))

    def shape(self) -> list[tuple[int, int]]:
        """Return the points (utilization, score) of RequestedToCapacityRatio."""
        points = self._scoring().get("requestedToCapacityRatio", {}).get("shape", ())
        return [(each.get("utilization", 0), each.get("score", 0)) for each in points]

    def balanced_resources(self) -> list[str]:
        """Return the resources that NodeResourcesBalancedAllocation balances."""
        return list(_weights(self.of("NodeResourcesBalancedAllocation").get("resources", ())))

    def is_system_spread(self) -> bool:
        """Return whether PodTopologySpread uses the system's default constraints."""
        return str(self.of("PodTopologySpread").get("defaultingType", "System")) == "System"

    def _scoring(self) -> Json:
        strategy: Json = self.of("NodeResourcesFit").get("scoringStrategy", {})
        return strategy


def _weights(resources: Sequence[Json]) -> dict[str, int]:
    """Return weights by resource: a resource that is listed twice counts twice, and a missing weight is 1."""
    weights: dict[str, int] = {}
    for each in resources:
        weights[each["name"]] = weights.get(each["name"], 0) + (each.get("weight") or 1)
    return weights or dict(DEFAULT_RESOURCES)


def check_arguments(
    plugin: str, args: Json, place: Place, unfit: Collection[str] = ()
) -> Iterator[Diagnostic]:
    """Yield the errors in arguments that fit the schema.

    `unfit` are the keys of values that did not fit and were left out: they are not missing.
    """
    match plugin:
        case "DefaultPreemption":
            yield from _preemption(args, place)
        case "DynamicResources":
            yield from _timeouts(args, place)
        case "NodeAffinity":
            yield from _affinity(args.get("addedAffinity", {}), place)
        case "NodeResourcesBalancedAllocation":
            yield from _unique([each["name"] for each in args.get("resources", ())], "resources", place)
        case "NodeResourcesFit":
            yield from _shape(args.get("scoringStrategy", {}), place, unfit)
        case "PodTopologySpread":
            yield from _spread(args, place, unfit)
        case _:
            pass


def _preemption(args: Json, place: Place) -> Iterator[Diagnostic]:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    if args.get(percentage) == 0 and args.get(absolute) == 0:
        title = f"{percentage} and {absolute} are both 0: no node would be a candidate"
        yield Diagnostic(ConfigCode.CONFLICT, title, place(absolute))


def _timeouts(args: Json, place: Place) -> Iterator[Diagnostic]:
    for key, least in (("filterTimeout", 0), ("bindingTimeout", 1)):
        if key in args and seconds(args[key]) < least:
            yield Diagnostic(ConfigCode.WRONG_VALUE, f"`{key}` must be at least {least}s", place(key))


def seconds(duration: str) -> float:
    """Return the seconds of a Go duration."""
    units = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)", duration)
    total = sum(float(amount) * units[unit] for amount, unit in parts)
    return -total if duration.startswith("-") else total


def _shape(strategy: Json, place: Place, unfit: Collection[str]) -> Iterator[Diagnostic]:
    if strategy.get("type") != _SHAPED:
        return
    points = strategy.get("requestedToCapacityRatio", {}).get("shape", ())
    if not points and not is_among(unfit, "requestedToCapacityRatio", "shape"):
        title = f"`{_SHAPED}` needs a shape of at least one point"
        yield Diagnostic(ConfigCode.MISSING_KEY, title, place("scoringStrategy", "requestedToCapacityRatio"))
    for index, (left, right) in enumerate(pairwise(points)):
        if left.get("utilization", 0) >= right.get("utilization", 0):
            title = "the utilization of a point must be more than that of the point before it"
            at = place("scoringStrategy", "requestedToCapacityRatio", "shape", index + 1, "utilization")
            yield Diagnostic(ConfigCode.WRONG_VALUE, title, at)


def _spread(args: Json, place: Place, unfit: Collection[str]) -> Iterator[Diagnostic]:
    constraints = args.get("defaultConstraints", ())
    is_system = args.get("defaultingType", "System") == "System" and not is_among(unfit, "defaultingType")
    if constraints and is_system:
        title = "defaultConstraints need `defaultingType: List`: with `System` they are the system's"
        yield Diagnostic(ConfigCode.CONFLICT, title, place("defaultConstraints"))
    names = [f"{each['topologyKey']}, {each['whenUnsatisfiable']}" for each in constraints]
    yield from _unique(names, "defaultConstraints", place)


def is_among(unfit: Collection[str], *keys: str) -> bool:
    """Return whether one of the keys was left out, perhaps because it is misspelled."""
    return any(key in keys or nearest(key, keys) for key in unfit)


def _unique(names: Sequence[str], key: str, place: Place) -> Iterator[Diagnostic]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Diagnostic(ConfigCode.LISTED_TWICE, f"`{key}` holds `{name}` twice", place(key, index))


def _affinity(affinity: Json, place: Place) -> Iterator[Diagnostic]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    terms: list[tuple[tuple[str | int, ...], Json]] = [
        ((required, "nodeSelectorTerms", index), term)
        for index, term in enumerate(affinity.get(required, {}).get("nodeSelectorTerms", ()))
    ]
    terms += [
        ((preferred, index, "preference"), each["preference"])
        for index, each in enumerate(affinity.get(preferred, ()))
    ]
    for path, term in terms:
        for index, requirement in enumerate(term.get("matchExpressions", ())):
            fault = _fault(requirement["operator"], requirement.get("values", ()))
            if fault:
                at = place("addedAffinity", *path, "matchExpressions", index)
                yield Diagnostic(ConfigCode.WRONG_VALUE, f"operator `{requirement['operator']}` {fault}", at)


def _fault(operator: str, values: Sequence[str]) -> str:
    """Return the error in the values of a requirement; empty where there is none."""
    match operator:
        case "In" | "NotIn" if not values:
            return "needs values"
        case "In" | "NotIn" if not all(_LABEL_VALUE.fullmatch(value) for value in values):
            return "needs values that labels can have"
        case "Exists" | "DoesNotExist" if values:
            return "takes no values"
        case "Gt" | "Lt" if len(values) != 1 or not _is_integer(values[0]):
            return "needs one value, a whole number"
        case _:
            return ""


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9]{1,19}", text, re.ASCII) is not None and int(text) in _INT64
