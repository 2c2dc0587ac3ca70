"""The compiled rules of a profile as plugins. `kdsl.profiles` registers them like any other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.compiler import Probe
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.hooks.faults import Fault
from kdsl.plan.card_table import CardsOf, no_cards
from kdsl.plan.columns.over_nodes import lower_macro
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.preemption import PreemptionPlugin
from kdsl.plan.rules.queue import QueuePlugin
from kdsl.plan.rules.sample import SampleProgram
from kdsl.plan.rules.score import ScorePlugin


@dataclass(frozen=True, slots=True)
class CompiledProfile:
    """The rules of one profile as plugins, in its order. Those that plugins bring are not among them.

    It also collects the errors that rules ignore. A rule ignores an error if it goes on without a value:
    `applies when` counts as true, a score gives the node nothing. A kept answer does not contain the error.
    So rules that ever ignored one run again for each decision, by the scalar back end: equal pods on equal
    nodes have equal faults.
    """

    name: str
    scheduler: str
    predicates: tuple[PredicatePlugin, ...]
    scores: tuple[ScorePlugin, ...]
    queue: QueuePlugin
    preemption: PreemptionPlugin | None
    sample: SampleProgram | None
    erred: set[str]
    """The rules that ever ignored an error, by qualified name; see `CompiledFunctions`."""

    @property
    def may_have_faults(self) -> bool:
        return bool(self.erred)

    def faults_of_pod(
        self, pod: PodInfo, snapshot: Snapshot, ran: Collection[str], ended_by: str
    ) -> Iterator[Fault]:
        if self.queue.qualified in self.erred:
            yield from self.queue.faults_of_pod(pod)
        for predicate in self.predicates:
            if predicate.name not in ran:
                continue
            # It is unknown whether the tightenings of the last predicate ran.
            for part in predicate.parts[:1] if predicate.name == ended_by else predicate.parts:
                if part.rule.qualified in self.erred:
                    yield from part.faults_of_pod(pod, snapshot)

    def faults_of_filters(self, pod: PodInfo, reached: Callable[[str, bool], NodeSet]) -> Iterator[Fault]:
        for predicate in self.predicates:
            for place, part in enumerate(predicate.parts):
                if part.rule.qualified in self.erred:
                    # Tightenings ran on the nodes that passed.
                    yield from part.faults_at(pod, reached(predicate.name, place > 0))

    def faults_of_scores(self, pod: PodInfo, nodes: NodeSet) -> Iterator[Fault]:
        for score in self.scores:
            if score.rule.qualified in self.erred:
                yield from score.faults_at(pod, nodes)

    def faults_of_preemption(self) -> tuple[Fault, ...]:
        return () if self.preemption is None else self.preemption.log.take()


def compile_profile(
    rules: RuleSet,
    profile: CheckedProfile,
    probe: Probe | None = None,
    steps: Steps = DEFAULT_STEPS,
    cards_of: CardsOf = no_cards,
) -> CompiledProfile:
    """Compile every rule of a profile; a `probe` observes them, `steps` bound them. `cards_of` reads the
    cards of a node for the devices of the profile.

    Profiles share nothing, not even the memo of a common rule: its parameters may differ.
    """
    functions = CompiledFunctions(rules.fns, probe, steps, lower_macro, cards_of)
    place, preemption = profile.qualified, profile.preemption
    return CompiledProfile(
        profile.name,
        profile.scheduler,
        tuple(
            _predicate(rule, f"{place}/predicate/{rule.qualified}", functions)
            for rule in profile.predicates
            if not rule.plugin
        ),
        tuple(
            ScorePlugin(entry.score, functions, entry.weight, f"{place}/score/{entry.score.qualified}")
            for entry in profile.scores
            if not entry.score.plugin
        ),
        QueuePlugin(profile.queue, f"{place}/queue/{profile.queue.qualified}", functions),
        None if preemption is None else PreemptionPlugin(preemption, f"{place}/preemption", functions),
        None if profile.sample is None else SampleProgram(profile.sample, functions),
        functions.erred,
    )


def _predicate(rule: CheckedPredicate, key: str, functions: CompiledFunctions) -> PredicatePlugin:
    tightenings = [PredicateRule(each, functions, f"{key}/{each.qualified}") for each in rule.tightenings]
    return PredicatePlugin((PredicateRule(rule, functions, key), *tightenings))
