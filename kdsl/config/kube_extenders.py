"""The extenders of a kube-scheduler configuration: validated as kube-scheduler does. kdsl calls none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.config.codes import ConfigCode

_VERBS: Final = ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")


def check_extenders(
    extenders: Sequence[Mapping[str, Any]], place: Callable[..., Span]
) -> Iterator[Diagnostic]:
    """Say what is wrong with extenders, and that those that have a say are not called.

    `place` tells where the value at a path below `extenders` stands.
    """
    binders: list[int] = []
    resources: dict[str, Span] = {}
    for index, extender in enumerate(extenders):
        if extender.get("prioritizeVerb") and not extender.get("weight"):
            title = f"extender {index} has a prioritizeVerb and no weight"
            at, help_ = place(index, "prioritizeVerb"), ("add a positive weight",)
            yield Diagnostic(ConfigCode.MISSING_KEY, title, at, help=help_)
        if extender.get("bindVerb"):
            binders.append(index)
        for number, resource in enumerate(extender.get("managedResources", ())):
            span = place(index, "managedResources", number, "name")
            if resource["name"] in resources:
                title = f"resource `{resource['name']}` is managed twice"
                labels = (Label(resources[resource["name"]], "the first one is here"),)
                yield Diagnostic(ConfigCode.LISTED_TWICE, title, span, secondary=labels)
            resources.setdefault(resource["name"], span)
        verbs = [verb for verb in _VERBS if extender.get(verb)]
        if verbs:
            yield _not_called(extender, verbs, place(index, verbs[0]))
    if len(binders) > 1:
        title = f"{len(binders)} extenders bind: one may"
        labels = (Label(place(binders[0], "bindVerb"), "the first one is here"),)
        yield Diagnostic(ConfigCode.CONFLICT, title, place(binders[1], "bindVerb"), secondary=labels)


def ignored_by_scheduler(extenders: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the resources that extenders look at in the scheduler's place, in order."""
    managed = (each for extender in extenders for each in extender.get("managedResources", ()))
    return tuple(dict.fromkeys(each["name"] for each in managed if each.get("ignoredByScheduler")))


def _not_called(extender: Mapping[str, Any], verbs: Sequence[str], span: Span) -> Diagnostic:
    which = f"`{extender['urlPrefix']}`" if extender.get("urlPrefix") else "without a urlPrefix"
    return Diagnostic(
        ConfigCode.NOT_SUPPORTED,
        f"extender {which} is not called: kdsl has no extenders",
        span,
        f"no effect: {', '.join(verbs)}",
        Severity.WARNING,
        help=("write what it decides as rules, or as a plugin: see docs/plugins.md",),
    )
