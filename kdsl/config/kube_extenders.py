"""Extenders of a kube-scheduler configuration: validated as kube-scheduler does, written for kdsl's
plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.config.codes import ConfigCode
from kdsl.config.kube_arguments import is_among, seconds

PLUGIN: Final = "Extender"
"""The plugin that calls extenders."""
_VERBS: Final = ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")
_REST: Final = ("weight", "nodeCacheCapable", "ignorable", "enableHTTPS")


def check_extenders(
    extenders: Sequence[Mapping[str, Any]],
    place: Callable[..., Span],
    unfit: Callable[[int], Collection[str]],
) -> Iterator[Diagnostic]:
    """Yield the errors in extenders, and a diagnostic for each with verbs but no HTTP address.

    `place` returns the place of the value at a path below `extenders`, `unfit` the keys of an extender whose
    values did not fit and were left out: they are not missing.
    """
    binders: list[int] = []
    resources: dict[str, Span] = {}
    for index, extender in enumerate(extenders):
        left_out = unfit(index)
        has_weight = extender.get("weight") or is_among(left_out, "weight")
        if extender.get("prioritizeVerb") and not has_weight:
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
        if verbs and not _is_address(extender) and not is_among(left_out, "urlPrefix"):
            yield _unreachable(extender, place(index, verbs[0]))
    if len(binders) > 1:
        title = f"{len(binders)} extenders bind: one may"
        labels = (Label(place(binders[0], "bindVerb"), "the first one is here"),)
        yield Diagnostic(ConfigCode.CONFLICT, title, place(binders[1], "bindVerb"), secondary=labels)


def ignored_by_scheduler(extenders: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the resources that extenders check and the scheduler ignores, in order."""
    managed = (each for extender in extenders for each in extender.get("managedResources", ()))
    return tuple(dict.fromkeys(each["name"] for each in managed if each.get("ignoredByScheduler")))


def extender_arguments(extenders: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the extenders that have a verb to call, in the form that the plugin takes."""
    found = []
    for extender in extenders:
        verbs = {verb: extender[verb] for verb in _VERBS if extender.get(verb)}
        if not verbs or not _is_address(extender):
            continue
        written = {"urlPrefix": extender["urlPrefix"], **verbs}
        written |= {key: extender[key] for key in _REST if extender.get(key)}
        timeout = extender.get("httpTimeout", "")
        if seconds(timeout) > 0:
            written["httpTimeout"] = timeout.lstrip("+")
        if extender.get("managedResources"):
            written["managedResources"] = [{"name": each["name"]} for each in extender["managedResources"]]
        tls = {key: value for key, value in extender.get("tlsConfig", {}).items() if value}
        found.append({**written, **({"tlsConfig": tls} if tls else {})})
    return found


def extender_settings(extenders: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings that activate the plugin for `extenders`; empty without extenders."""
    if not extenders:
        return {}
    # The order matters: an extender that binds is called before the binder.
    plugin = {"name": PLUGIN, "args": {"extenders": list(extenders)}}
    return {"plugins": [plugin, {"name": "default-binder"}]}


def _is_address(extender: Mapping[str, Any]) -> bool:
    prefix: str = extender.get("urlPrefix", "")
    return prefix.startswith(("http://", "https://"))


def _unreachable(extender: Mapping[str, Any], span: Span) -> Diagnostic:
    prefix = extender.get("urlPrefix")
    title = f"an extender cannot be asked at `{prefix}`" if prefix else "an extender has no urlPrefix"
    help_ = ("write `urlPrefix: http://HOST:PORT/PATH`, or leave the extender out",)
    return Diagnostic(
        ConfigCode.NOT_SUPPORTED, f"{title}: it is left out", span, severity=Severity.WARNING, help=help_
    )
