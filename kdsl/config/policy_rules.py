"""Writes the content of a scheduling policy as rules.

It becomes a profile that extends the shipped profile of that time and states the differences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from kdsl.base.span import Source
from kdsl.config.kube_extenders import extender_settings
from kdsl.config.kube_rules import Converted, word_of
from kdsl.config.kube_scheduler import DEFAULT_SCHEDULER
from kdsl.config.policy import DEFAULT_PREDICATES, DEFAULT_PRIORITIES, Policy
from kdsl.lang.formatter import format_source

_ELSEWHERE: Final = {
    "CheckVolumeBinding": "plugins.VolumeBinding",
    "EvenPodsSpread": "v1_36.PodTopologySpread",
    "EvenPodsSpreadPriority": "v1_36.PodTopologySpread",
}
"""Names without a rule in `kubernetes.classic`, with their present counterparts."""
_SPREAD: Final = ("EvenPodsSpread", "EvenPodsSpreadPriority")


def convert_policy(policy: Policy, origin: str) -> Converted:
    """Write a policy as a rule file. `origin` is the name of its file; it names the package too."""
    package = word_of(origin.partition(".")[0]) or "imported"
    profile = word_of(DEFAULT_SCHEDULER)
    spreads = any(name in (*policy.predicates, *policy.priorities) for name in _SPREAD)
    imports = ["import kubernetes.classic", *(["import kubernetes.v1_36"] if spreads else [])]
    lines = [*_predicates(policy), *_priorities(policy)]
    lines += ["set PodTopologySpread.defaultConstraints = []"] if spreads else []
    lines += (
        f"set {rule}.{param} = {json.dumps(value, ensure_ascii=False)}"
        for (rule, param), value in policy.arguments.items()
    )
    head = "\n".join(["kdsl 1", f"package {package}", *imports])
    body = "".join(f"  {line}\n" for line in lines)
    text = (
        f"{head}\n\n/// The policy of {origin}.\nprofile {profile} extends classic.default_provider {{\n"
        f"  scheduler {json.dumps(DEFAULT_SCHEDULER)}\n{body}}}\n"
    )
    formatted = format_source(Source(f"{package}.kdsl", text))
    # INVARIANT: the generated text parses; texts of the policy are written as JSON strings.
    assert formatted.text is not None, (text, formatted.diagnostics)
    settings = extender_settings(policy.extenders)
    return Converted(package, formatted.text, (f"{package}.{profile}",), settings)


def _predicates(policy: Policy) -> Iterator[str]:
    """Yield the changes from the default predicates to those of the policy, which are in their order."""
    if policy.check_all:
        yield "check all"
    chosen = policy.predicates
    yield from (f"disable predicate {_name(each)}" for each in DEFAULT_PREDICATES if each not in chosen)
    for at, each in enumerate(chosen):
        if each not in DEFAULT_PREDICATES:
            # The predicates before it are in place already; a mandatory predicate follows the first one.
            where = f"after {_name(chosen[at - 1])}" if at else f"before {_name(chosen[1])}"
            yield f"add predicate {_rule(each)} {where}"


def _priorities(policy: Policy) -> Iterator[str]:
    """Yield the changes from the default priorities to those of the policy. Their order has no meaning."""
    weights = policy.priorities
    yield from (f"disable score {each}" for each in DEFAULT_PRIORITIES if each not in weights)
    for each, weight in weights.items():
        if each not in DEFAULT_PRIORITIES:
            yield f"add score {_rule(each)} weight {weight}"
        elif weight != DEFAULT_PRIORITIES[each]:
            yield f"reweight {each} {weight}"


def _rule(name: str) -> str:
    return _ELSEWHERE.get(name, f"classic.{name}")


def _name(name: str) -> str:
    """Return the name of a rule in a profile."""
    return _rule(name).rpartition(".")[2]
