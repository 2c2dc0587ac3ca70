"""Tries a property on generated worlds: those of the fixtures, random ones, then variations of them.

A world in which a condition gets a value for the first time becomes a parent of worlds that differ from it in
a few fields. So the search continues from a world that got halfway through `a && b && c`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from random import Random
from typing import Final

from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cycle.decision import Decision
from kdsl.explain.patience import Patience
from kdsl.lang.tree import File
from kdsl.testing.cases import Law, LawKind, PropertyCase
from kdsl.testing.coverage import CoveragePoint, Key
from kdsl.testing.generating import Generator
from kdsl.testing.proof import ConditionProbe, Outcome, Proof, conditions_of, keys_of, parts_of
from kdsl.testing.session import Session
from kdsl.testing.vocabulary import Vocabulary
from kdsl.testing.world import World, shrink

SECONDS: Final = 60
"""The time limit of a law. Only rules that spend their budgets reach it: each decision takes seconds then."""
_PODS_PER_CLUSTER: Final = 10
_OTHER_PARALLELISM: Final = 3
_TRIES: Final = 2500
"""The largest number of worlds tried for conditions that random ones did not reach."""
_IN_VAIN: Final = 800
"""The search ends after this number of tries without a new outcome."""
_FRESH: Final = 0.3
"""The share of new worlds among those tried for a condition."""
_AROUND: Final = 60
"""The number of neighbours of successful worlds that are tried at the end: the law may break beside them."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A minimal world for which a law does not hold, and the violation.

    Without a world no generated case was relevant to the law.
    """

    text: str
    world: World | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """The sessions of a profile: one whose conditions are `watched`, and one that runs as a scheduler
    does.
    """

    watched: Session
    plain: Session


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a search: a counterexample if there is one, and the evidence for the law."""

    counterexample: Counterexample | None
    proof: Proof


def search(
    case: PropertyCase,
    rules: RuleSet,
    files: Sequence[File],
    sessions: Mapping[str, Pair],
    probe: ConditionProbe,
    seed: int,
    patience: Patience,
) -> Finding:
    """Try a law on generated worlds, until one breaks it, the evidence is enough, or the time is over.

    `files` hold the rules; `probe` watches the `sessions` of the law's profiles.
    """
    law = case.law
    profiles = [rules.profiles[name] for name in law.profiles]
    trial = _Trial(law, sessions, tuple(case.fixtures.catalog.values()))
    random = Random(f"{seed}/{case.name}")
    parts = parts_of(law.kind, profiles)
    words = Vocabulary.of(rules, _read_by(profiles), case.fixtures)
    focus = Vocabulary.of(rules, parts, case.fixtures) if parts else words
    each = [Vocabulary.of(rules, [part], case.fixtures) for part in parts]
    generator = Generator(words, [focus, *each], case.fixtures, random)
    points = conditions_of(parts, files)
    owners = {key: at for at, part in enumerate(parts, start=1) for key in keys_of(part)}
    return _CounterexampleSearch(case, trial, generator, random, probe, points, owners, patience).run()


def _read_by(profiles: Sequence[CheckedProfile]) -> list[object]:
    """Return the rules whose words are used: rules that cannot break the law must let pods pass as well."""
    return [
        part
        for profile in profiles
        for part in (
            *profile.predicates,
            *(scored.score for scored in profile.scores),
            profile.queue,
            profile.preemption,
            *(profile.sharing.devices if profile.sharing is not None else ()),
        )
        if part is not None
    ]


@dataclass(slots=True)
class _CounterexampleSearch:
    """One search. `owners` are the rules of conditions, by their number among the focuses.

    By outcome, `parents` are the first worlds with it, and `again` the last ones, for conditions with one
    missing outcome.
    """

    case: PropertyCase
    trial: _Trial
    generator: Generator
    random: Random
    probe: ConditionProbe
    points: Sequence[CoveragePoint]
    owners: Mapping[Key, int]
    patience: Patience
    parents: dict[Outcome, World] = field(default_factory=dict)
    again: dict[Outcome, World] = field(default_factory=dict)
    tried: int = 0
    _opposites: list[Outcome] = field(default_factory=list)

    def run(self) -> Finding:
        found = self._given_worlds() or self._random_worlds() or self._guided_worlds() or self._neighbours()
        unfinished = self.patience.ran_out and found is None
        if found is None and not self.trial.any_feasible and not unfinished:
            profile = self.trial.law.profiles[0]
            text = f"no generated pod fits on any generated node under `{profile}`: nothing was tested"
            found = Counterexample(text)
        return Finding(found, self.probe.proof(self.tried, self.points, unfinished=unfinished))

    def _given_worlds(self) -> Counterexample | None:
        given = takewhile(self._goes_on, self.generator.given())
        found = (self._try(world) for world in given)
        return next((each for each in found if each is not None), None)

    def _random_worlds(self) -> Counterexample | None:
        base = World()
        for number in range(self.case.pods):
            if self.patience.is_over():
                break
            if number % _PODS_PER_CLUSTER == 0:
                base = self.generator.world(self.case.cluster_size)
            found = self._try(World(self.generator.pod(), base.nodes, base.bound, base.objects))
            if found is not None:
                return found
        return None

    def _guided_worlds(self) -> Counterexample | None:
        """Change worlds that came near a condition with a missing outcome."""
        in_vain = 0
        for _ in range(_TRIES):
            missing = self._missing()
            self._opposites = [(key, not value) for key, value in missing]
            if not missing or in_vain == _IN_VAIN or not self.parents or self.patience.is_over():
                break
            known = len(self.parents)
            found = self._try(self._next(missing))
            if found is not None:
                return found
            in_vain = 0 if len(self.parents) > known else in_vain + 1
        return None

    def _neighbours(self) -> Counterexample | None:
        for _ in range(_AROUND if self.parents else 0):
            if self.patience.is_over():
                break
            found = self._try(self.generator.changed(self._any_parent()))
            if found is not None:
                return found
        return None

    def _goes_on(self, world: World) -> bool:
        """Return whether there is time left for a world; one is tried in any case."""
        return not self.tried or not self.patience.is_over()

    def _missing(self) -> list[Outcome]:
        return [
            (point.key, value)
            for point in self.points
            if point.key in self.probe.compiled
            for value in (True, False)
            if (point.key, value) not in self.probe.counts
        ]

    def _next(self, missing: Sequence[Outcome]) -> World:
        """Make a world for a missing outcome of a condition: a new one, or a variation of one that came near
        it.
        """
        key, value = missing[self.random.randrange(len(missing))]
        focus = self.owners[key]
        if self.random.random() < _FRESH:
            return self.generator.fresh(focus)
        return self.generator.changed(self._parent(key, value=value), focus)

    def _parent(self, key: Key, *, value: bool) -> World:
        """Choose a world to change: mostly one in which a wanted condition had its other value."""
        worlds = self.random.choice((self.parents, self.again))
        near = worlds.get((key, not value))
        return near if near is not None and self.random.random() < 0.8 else self._any_parent()

    def _any_parent(self) -> World:
        worlds = list(self.parents.values())
        # The most recent worlds went deepest.
        recent = worlds[-10:] if self.random.random() < 0.5 else worlds
        return recent[self.random.randrange(len(recent))]

    def _try(self, world: World) -> Counterexample | None:
        counts = self.probe.counts
        known, held = len(counts), dict(counts)
        before = [(each, counts.get(each, 0)) for each in self._opposites]
        violation = self.trial.violation(world)
        if violation is None:
            return None
        self.tried += 1
        if violation:
            return self._counterexample(world)
        if not self.trial.is_relevant:
            # A pod that no profile takes cannot be decided wrongly, so its conditions prove nothing.
            counts.clear()
            counts.update(held)
            return None
        self.again.update((each, world) for each, count in before if counts.get(each, 0) > count)
        if len(counts) > known:
            self.parents.update(dict.fromkeys(list(counts)[known:], world))
        return None

    def _counterexample(self, world: World) -> Counterexample:
        trial = self.trial

        def breaks(smaller: World) -> bool:
            return not self.patience.is_over() and bool(smaller.nodes) and bool(trial.violation(smaller))

        small = shrink(world, breaks)
        return Counterexample(trial.violation(small) or "", small)


@dataclass(slots=True)
class _Trial:
    """One law and the sessions of its profiles.

    `any_feasible`: a node was feasible for the first one. `is_relevant`: the last world had a feasible node
    for one of the two profiles of a comparison.
    """

    law: Law
    sessions: Mapping[str, Pair]
    catalog: Sequence[CatalogObject]
    any_feasible: bool = False
    is_relevant: bool = True

    def violation(self, world: World) -> str | None:
        """Return how a world breaks the law: empty where it does not, None where the world is invalid."""
        built = world.build(self.catalog)
        if built is None:
            return None
        cluster, pod = built
        name = self.law.profiles[0]
        first = self.sessions[name].watched.decide(cluster, pod)
        feasible = _feasible(first)
        self.any_feasible = self.any_feasible or bool(feasible)
        match self.law.kind:
            case LawKind.DETERMINISTIC:
                again = self.sessions[name].plain.decide(cluster, pod, _OTHER_PARALLELISM)
                return "" if again == first else f"decided twice: {_shown(first)}, then {_shown(again)}"
            case LawKind.ORDER_INDEPENDENT:
                turned = replace(cluster, nodes=tuple(reversed(cluster.nodes)))
                other = self.sessions[name].plain.decide(turned, pod)
                same = _by_node(first) == _by_node(other)
                return "" if same else f"nodes in reverse order: {_shown(first)}, then {_shown(other)}"
            case LawKind.SUBSET | LawKind.EQUAL:
                second = self.law.profiles[1]
                others = _feasible(self.sessions[second].watched.decide(cluster, pod))
                self.is_relevant = bool(feasible | others)
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
