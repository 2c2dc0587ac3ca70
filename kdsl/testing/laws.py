"""Properties: laws that hold for all pods and clusters, tried on many that are generated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from kdsl.app import find_profile
from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.errors import InvalidInputError
from kdsl.check.model import CheckedProfile, RuleSet
from kdsl.cycle.decision import Decision
from kdsl.testing.cases import Law, LawKind, PropertyCase
from kdsl.testing.codes import TestCode
from kdsl.testing.document import Place
from kdsl.testing.generating import Generator, World, shrink
from kdsl.testing.session import Session
from kdsl.testing.vocabulary import Vocabulary

_COMPARISON: Final = re.compile(r"feasible\(\s*([\w.]+)\s*\)\s+(\w+)\s+feasible\(\s*([\w.]+)\s*\)")
_FORMS: Final = (
    "feasible(A) subsetOf feasible(B)",
    "feasible(A) equals feasible(B)",
    "deterministic",
    "order independent",
)
_PODS_PER_CLUSTER: Final = 10
_OTHER_PARALLELISM: Final = 3


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A world, as small as it gets, for which a law does not hold, and what happens there.

    Without a world the law was not put to the test at all.
    """

    text: str
    world: World | None = None


def read_law(place: Place, rules: RuleSet, own: CheckedProfile, found: list[Diagnostic]) -> Law | None:
    """Read the `holds` of a property; `own` is the profile under test."""
    text = " ".join(place.text.split())
    if text in (LawKind.DETERMINISTIC, LawKind.ORDER_INDEPENDENT):
        return Law(LawKind(text), (own.qualified,))
    match = _COMPARISON.fullmatch(text)
    if match is None or match[2] not in (LawKind.SUBSET, LawKind.EQUAL):
        help_ = (*did_you_mean(text, _FORMS[2:]), f"laws: {'; '.join(_FORMS)}")
        found.append(Diagnostic(TestCode.BAD_LAW, f"`{text}` is no law", place.span, "unknown", help=help_))
        return None
    names: list[str] = []
    for name in (match[1], match[3]):
        try:
            names.append(find_profile(rules, name).qualified)
        except InvalidInputError as error:
            found.extend(
                replace(each, code=TestCode.UNKNOWN_RULE, span=place.span, label="unknown", where="")
                for each in error.diagnostics
            )
    return Law(LawKind(match[2]), tuple(names)) if len(names) == 2 else None


def search_counterexample(
    case: PropertyCase, rules: RuleSet, session_of: Callable[[str], Session], seed: int
) -> Counterexample | None:
    """Try the law on generated worlds; return the first for which it does not hold, shrunk."""
    law = case.law
    profiles = [rules.profiles[name] for name in law.profiles]
    random = Random(f"{seed}/{case.name}")
    generator = Generator(Vocabulary.of(profiles, case.fixtures), random)
    trial = _Trial(law, {name: session_of(name) for name in law.profiles})
    base = World()
    for number in range(case.pods):
        if number % _PODS_PER_CLUSTER == 0:
            base = generator.nodes(case.cluster_size)
        world = World(generator.pod(), base.nodes, base.bound)
        if trial.violation(world):
            small = shrink(world, lambda each: bool(each.nodes) and bool(trial.violation(each)))
            return Counterexample(trial.violation(small), small)
    if not trial.any_feasible:
        text = f"no generated pod fits on any generated node under `{law.profiles[0]}`: nothing was tested"
        return Counterexample(text)
    return None


@dataclass(slots=True)
class _Trial:
    """One law and the sessions of its profiles. `any_feasible`: some node was feasible for the first one."""

    law: Law
    sessions: Mapping[str, Session]
    any_feasible: bool = False

    def violation(self, world: World) -> str:
        """Say how a world breaks the law; empty where it does not."""
        cluster, pod = world.cluster(), world.pod_info()
        name = self.law.profiles[0]
        first = self.sessions[name].decide(cluster, pod)
        feasible = _feasible(first)
        self.any_feasible = self.any_feasible or bool(feasible)
        match self.law.kind:
            case LawKind.DETERMINISTIC:
                again = self.sessions[name].decide(cluster, pod, _OTHER_PARALLELISM)
                return "" if again == first else f"decided twice: {_shown(first)}, then {_shown(again)}"
            case LawKind.ORDER_INDEPENDENT:
                turned = replace(cluster, nodes=tuple(reversed(cluster.nodes)))
                other = self.sessions[name].decide(turned, pod)
                same = _by_node(first) == _by_node(other)
                return "" if same else f"nodes in reverse order: {_shown(first)}, then {_shown(other)}"
            case LawKind.SUBSET | LawKind.EQUAL:
                second = self.law.profiles[1]
                others = _feasible(self.sessions[second].decide(cluster, pod))
                extra = sorted(feasible - others)
                if extra:
                    return f"`{extra[0]}` is feasible under `{name}`, and not under `{second}`"
                missing = sorted(others - feasible) if self.law.kind is LawKind.EQUAL else []
                if missing:
                    return f"`{missing[0]}` is feasible under `{second}`, and not under `{name}`"
                return ""


def _feasible(decision: Decision) -> set[str]:
    return {verdict.node for verdict in decision.verdicts if verdict.feasible}


def _by_node(decision: Decision) -> dict[str, object]:
    return {verdict.node: (verdict.feasible, verdict.status, verdict.scores) for verdict in decision.verdicts}


def _shown(decision: Decision) -> str:
    return f"{decision.outcome} {decision.node or decision.message}".strip()
