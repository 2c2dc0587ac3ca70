"""The compiled rules of a profile as plugins. `kdsl.profiles` registers them like any other."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.check.model.rule_set import CheckedPredicate, CheckedProfile, RuleSet
from kdsl.eval.scalar.compiler import Probe
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.plan.card_table import CardsOf, no_cards
from kdsl.plan.columns.nodes import lower_macro
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.preemption import PreemptionPlugin
from kdsl.plan.rules.queue import QueuePlugin
from kdsl.plan.rules.sample import SampleProgram
from kdsl.plan.rules.score import ScorePlugin


@dataclass(frozen=True, slots=True)
class CompiledProfile:
    """The rules of one profile as plugins, in its order. Those that plugins bring are not among them."""

    name: str
    scheduler: str
    predicates: tuple[PredicatePlugin, ...]
    scores: tuple[ScorePlugin, ...]
    queue: QueuePlugin
    preemption: PreemptionPlugin | None
    sample: SampleProgram | None
    erred: set[str]
    """The rules that ever ignored an error; see `CompiledFunctions`."""


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
