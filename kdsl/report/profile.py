"""An effective profile as text and as a document: with everything it inherits, and the origins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdsl.base.span import Span
from kdsl.base.visible import visible_lines
from kdsl.check.model.rule_set import (
    CheckedParam,
    CheckedPredicate,
    CheckedPreemption,
    CheckedProfile,
    CheckedScore,
)
from kdsl.check.model.sharing import DEVICES
from kdsl.lang.printer import format_declaration
from kdsl.lang.profile_tree import Tighten
from kdsl.lang.tree import Require
from kdsl.report.decisions import API_VERSION, Json

_MAX_COLUMN = 72

Line = tuple[str, str]
"""A line of text, and its origin: empty for brackets and the like."""


def profile_text(profile: CheckedProfile) -> str:
    """Return a profile as it would be written without `extends`, each line with its origin."""
    lines = list(_lines(profile))
    width = max(len(text) for text, site in lines if site and len(text) <= _MAX_COLUMN)
    return visible_lines(f"{text:<{width}}  // {site}" if site else text for text, site in lines)


def profile_document(profile: CheckedProfile) -> dict[str, Json]:
    """Return a profile as a document."""
    origins = profile.origins
    return {
        "apiVersion": API_VERSION,
        "kind": "EffectiveProfile",
        "name": profile.qualified,
        "origin": profile.span.site,
        "extends": profile.extends,
        "team": profile.team,
        "scheduler": {"name": profile.scheduler, "origin": origins.scheduler.site},
        "check": {
            "predicates": "all" if profile.check_all else "first",
            "origin": "" if origins.check is None else origins.check.site,
        },
        "sample": _sample_document(profile),
        "queue": {"name": profile.queue.qualified, "origin": origins.queue.site},
        "preemption": _preemption_document(profile),
        "predicates": [
            {
                **_rule_document(rule, span),
                "tightenings": [
                    {"text": format_declaration(each), "origin": each.span.site} for each in tightenings
                ],
            }
            for rule, span, tightenings in zip(
                profile.predicates, origins.predicates, origins.tightenings, strict=True
            )
        ],
        "scores": [
            {
                **_rule_document(entry.score, span),
                "weight": entry.weight,
                "weightOrigin": weighed.site,
            }
            for entry, span, weighed in zip(profile.scores, origins.scores, origins.weights, strict=True)
        ],
        **_devices_document(profile),
    }


def _sample_document(profile: CheckedProfile) -> Json:
    if profile.sample is None:
        return None
    return {"count": profile.sample.count.span.text, "origin": profile.sample.span.site}


def _devices_document(profile: CheckedProfile) -> dict[str, Json]:
    sharing = profile.sharing
    if sharing is None:
        return {}
    return {
        "devices": [
            {"device": device.qualified, "origin": used.site}
            for device, used in zip(sharing.devices, sharing.origins, strict=True)
        ],
        "deviceSettings": dict(sharing.values),
    }


def _preemption_document(profile: CheckedProfile) -> Json:
    if profile.preemption is None or profile.origins.preemption is None:
        return None
    return _rule_document(profile.preemption, profile.origins.preemption)


def _rule_document(rule: CheckedPredicate | CheckedScore | CheckedPreemption, used: Span) -> dict[str, Json]:
    return {
        "name": rule.name,
        "rule": rule.qualified,
        "origin": used.site,
        "declared": rule.span.site,
        "params": [
            {"name": param.variable.name, "value": param.value.span.text, "origin": param.value.span.site}
            for param in rule.params
        ],
    }


def _lines(profile: CheckedProfile) -> Iterator[Line]:
    origins = profile.origins
    yield from ((f"/// {line}".rstrip(), "") for line in profile.doc)
    notes = [f"extends {profile.extends}"] if profile.extends else []
    notes += [f"of team {profile.team}"] if profile.team else []
    if notes:
        yield f"// {', '.join(notes)}", ""
    yield f"profile {profile.qualified} {{", profile.span.site
    yield f'  scheduler "{profile.scheduler}"', origins.scheduler.site
    if origins.check is not None:
        yield f"  check {'all' if profile.check_all else 'first'}", origins.check.site
    if profile.sample is not None:
        yield from _valued("  sample ", profile.sample.count.span)
    yield f"  queue {profile.queue.qualified}", origins.queue.site
    if profile.preemption is not None and origins.preemption is not None:
        yield f"  preemption {profile.preemption.qualified}", origins.preemption.site
    yield "  predicates {", ""
    for predicate, used in zip(profile.predicates, origins.predicates, strict=True):
        yield f"    {predicate.qualified}", used.site
    yield "  }", ""
    yield "  scores {", ""
    for entry, used, weighed in zip(profile.scores, origins.scores, origins.weights, strict=True):
        places = list(dict.fromkeys((used.site, weighed.site)))
        site = places[0] if len(places) == 1 else f"{places[0]}, weight {places[1]}"
        yield f"    {entry.score.qualified} weight {entry.weight}", site
    yield "  }", ""
    yield from _devices(profile)
    for predicate, tightenings in zip(profile.predicates, origins.tightenings, strict=True):
        for tightening in tightenings:
            yield from _tightening(predicate.name, tightening)
    for predicate in profile.predicates:
        yield from _params(predicate.name, predicate.params)
    for entry in profile.scores:
        yield from _params(entry.score.name, entry.score.params)
    if profile.preemption is not None:
        yield from _params(profile.preemption.name, profile.preemption.params)
    if profile.sharing is not None:
        yield from _params(DEVICES, profile.sharing.settings)
    yield "}", ""


def _devices(profile: CheckedProfile) -> Iterator[Line]:
    """Return the devices, one per line: each has its own origin."""
    sharing = profile.sharing
    if sharing is None or not sharing.devices:
        return
    last = len(sharing.devices) - 1
    for at, (device, used) in enumerate(zip(sharing.devices, sharing.origins, strict=True)):
        word = "devices" if at == 0 else " " * len("devices")
        yield f"  {word} {device.qualified}{',' if at < last else ''}", used.site


def _tightening(name: str, tightening: Tighten) -> Iterator[Line]:
    yield f"  tighten {name} {{", tightening.span.site
    for statement in tightening.body:
        for line in format_declaration(statement).splitlines():
            place = statement.span
            if isinstance(statement, Require) and line.startswith("  else "):
                place = statement.reason.span
            yield f"    {line}".rstrip(), place.site
    yield "  }", ""


def _params(rule: str, params: Sequence[CheckedParam]) -> Iterator[Line]:
    for param in params:
        yield from _valued(f"  set {rule}.{param.variable.name} = ", param.value.span)


def _valued(head: str, span: Span) -> Iterator[Line]:
    """Write a value behind its head, as it is in its file."""
    first, *rest = span.text.splitlines()
    yield head + first, span.site
    # The value starts in another column than in its file: shift its further lines equally.
    shift = len(head) - (span.column - 1)
    for text in rest:
        bare = text.lstrip(" ")
        yield " " * max(len(text) - len(bare) + shift, 0) + bare, ""
