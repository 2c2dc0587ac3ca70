"""Runs cases and reports each field whose actual value differs from the expected one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import yaml

from kdsl.base.span import Span
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.eval.scalar.compiler import Probe
from kdsl.explain.patience import Patience
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Status
from kdsl.report.decisions import decision_document
from kdsl.report.faults import traceback_lines
from kdsl.testing.card_cases import CardsBefore, cards_of, compare_annotations, compare_cards
from kdsl.testing.cases import Case, PodCase, PropertyCase, QueueCase, RuleTest
from kdsl.testing.document import PlacedValue
from kdsl.testing.mismatch import Mismatch, differs, shown
from kdsl.testing.proof import ConditionProbe, Proof
from kdsl.testing.recorded import Recorded
from kdsl.testing.search import SECONDS, Pair, search
from kdsl.testing.session import Session
from kdsl.testing.subject import Checked


class CaseOutcome(StrEnum):
    """The result of a case. A property is unproven where some condition never was true, or never false, and
    where it took too long.
    """

    PASSED = "passed"
    FAILED = "failed"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case with its mismatches."""

    test: RuleTest
    case: Case
    mismatches: tuple[Mismatch, ...] = ()
    proof: Proof | None = None

    @property
    def outcome(self) -> CaseOutcome:
        """Return the outcome of the case: a property that no world broke may still be unproven."""
        if self.mismatches:
            return CaseOutcome.FAILED
        if self.proof is not None and (self.proof.open or self.proof.unfinished):
            return CaseOutcome.UNPROVEN
        return CaseOutcome.PASSED

    @property
    def allowed(self) -> str:
        """The reason why this property may stay unproven; empty where there is none."""
        is_open = self.outcome is CaseOutcome.UNPROVEN
        return self.case.unproven if is_open and isinstance(self.case, PropertyCase) else ""

    @property
    def passed(self) -> bool:
        return self.outcome is CaseOutcome.PASSED or bool(self.allowed)


def _begin() -> Patience:
    return Patience(seconds=SECONDS)


@dataclass(slots=True)
class Runner:
    """Runs cases, each profile compiled once; `seed` is for properties, `begin` starts the time limit of
    each.

    A `probe` watches the rules in all cases except properties, whose coverage is accidental.
    """

    seed: int = 0
    probe: Probe | None = None
    begin: Callable[[], Patience] = _begin
    _sessions: dict[tuple[int, str, bool], tuple[RuleSet, Session]] = field(default_factory=dict)

    def run(self, test: RuleTest, case: Case) -> CaseResult:
        """Run one case."""
        checked = test.checked
        match case:
            case PodCase():
                found = self._pod(self._session(checked, checked.profile), case)
            case QueueCase():
                found = self._queue(self._session(checked, checked.profile), case)
            case PropertyCase():
                return self._property(test, case)
        return CaseResult(test, case, tuple(found))

    def _session(self, checked: Checked, profile: str, *, is_watched: bool = True) -> Session:
        rules = checked.rules
        # INVARIANT: rules with errors make no test.
        assert rules is not None
        key = (id(rules), profile, is_watched)
        if key not in self._sessions:
            probe = self.probe if is_watched else None
            # The session holds the rules: while they live, no other object has their id.
            self._sessions[key] = rules, Session(rules, profile, checked.plugins.args, probe)
        return self._sessions[key][1]

    def _pod(self, session: Session, case: PodCase) -> Iterator[Mismatch]:
        recorded = case.recorded_for(case.pod)
        cluster, pod, expect = case.cluster(), case.fixtures.pod(case.pod), case.expect
        decision = session.decide(cluster, pod, recorded=recorded)
        before = CardsBefore(session.cards, pod, cluster)
        yield from _Comparison(decision, expect, before).run()
        yield from _compare_room(case, decision)
        placed = session.placed(pod)
        why = _why_pending(decision)
        yield from compare_cards("cards", expect.get("cards"), cards_of(session.cards, placed), why)
        yield from compare_annotations(expect.get("annotations"), placed)
        wanted = case.expect.get("recorded")
        known = () if recorded is None or wanted is None else recorded.faults
        yield from unexpected_faults(decision.faults, expect, known)
        if recorded is not None and wanted is not None:
            yield from _moved(recorded, decision, wanted.span)

    def _queue(self, session: Session, case: QueueCase) -> Iterator[Mismatch]:
        pods = {arrival.pod: case.fixtures.pod(arrival.pod) for arrival in case.arrivals}
        arrivals = [
            (
                pods[arrival.pod]
                if arrival.priority is None
                else pods[arrival.pod].with_fields(priority=arrival.priority),
                arrival.second,
            )
            for arrival in case.arrivals
        ]
        queued = session.queue(case.cluster(), arrivals)
        names = {pod.key: name for name, pod in pods.items()}
        expect = case.expect
        order = [names[key] for key in queued.order]
        gated = {names[key]: reason for key, reason in queued.gated.items()}
        why = tuple(f"`{pod}` is gated: {reason}" for pod, reason in gated.items())
        yield from differs("order", expect.get("order"), order, why)
        yield from differs("gated", expect.get("gated"), gated)
        decisions = {names[decision.pod]: decision for decision in queued.decisions}
        placed = expect.get("placed")
        for pod, node in placed.items() if placed is not None else ():
            decision = decisions.get(pod)
            actual = decision.node or "no node" if decision is not None else "not scheduled"
            yield from differs(f"placed.{pod}", node, actual, _why_pending(decision) or why)
        unplaced = sorted(name for name, decision in decisions.items() if not decision.node)
        yield from differs("pending", expect.get("pending"), unplaced, in_order=False)
        yield from self._cards_of_queue(session, pods, decisions, expect)
        yield from unexpected_faults(queued.faults, expect)

    @staticmethod
    def _cards_of_queue(
        session: Session, pods: Mapping[str, PodInfo], decisions: Mapping[str, Decision], expect: PlacedValue
    ) -> Iterator[Mismatch]:
        cards, messages = expect.get("cards"), expect.get("messages")
        for name, wanted in cards.items() if cards is not None else ():
            found = cards_of(session.cards, session.placed(pods[name]))
            yield from compare_cards(f"cards.{name}", wanted, found, _why_pending(decisions.get(name)))
        for name, wanted in messages.items() if messages is not None else ():
            decision = decisions.get(name)
            yield from differs(f"messages.{name}", wanted, "" if decision is None else decision.message)

    def _property(self, test: RuleTest, case: PropertyCase) -> CaseResult:
        checked = test.checked
        assert checked.rules is not None

        probe = ConditionProbe()
        sessions = {
            name: Pair(
                Session(checked.rules, name, checked.plugins.args, probe),
                self._session(checked, name, is_watched=False),
            )
            for name in case.law.profiles
        }
        files = test.loaded.program.files
        found = search(case, checked.rules, files, sessions, probe, self.seed, self.begin())
        example = found.counterexample
        if example is None:
            return CaseResult(test, case, proof=found.proof)
        world = () if example.world is None else _yaml_lines({"fixtures": example.world.fixtures()})
        seeded = f"found with --seed {self.seed}; the smallest fixtures that show it:" if world else ""
        trace = (seeded, *world) if world else ()
        mismatch = Mismatch("holds", str(case.law), example.text, case.span, trace)
        return CaseResult(test, case, (mismatch,), found.proof)


def _moved(recorded: Recorded, decision: Decision, span: Span) -> Iterator[Mismatch]:
    """Yield the differences of a decision from the recorded one that matter to the cluster."""
    now = decision_document(decision)
    for key in _MEANING:
        then, here = recorded.decision[key], now[key]
        if then != here:
            yield Mismatch(f"recorded.{key}", shown(then), shown(here), span, _why_pending(decision))


@dataclass(slots=True)
class _Comparison:
    """One decision against the `expect` of its case."""

    decision: Decision
    expect: PlacedValue
    cards: CardsBefore

    def run(self) -> Iterator[Mismatch]:
        """Yield the differences, in the order of the keys' importance."""
        decision, expect = self.decision, self.expect
        feasible = [verdict.node for verdict in decision.verdicts if verdict.feasible]
        wanted = expect.get("feasible")
        names = {each.text for each in wanted.each()} if wanted is not None else set()
        odd = tuple(
            verdict.node for verdict in decision.verdicts if (verdict.node in names) != verdict.feasible
        )
        trace = tuple(line for node in odd for line in self._trace(node))
        yield from differs("feasible", wanted, feasible, trace or self._outcome(), in_order=False)
        rejected = expect.get("rejected")
        for node, place in rejected.items() if rejected is not None else ():
            yield from self._rejected(node, place)
        scores = expect.get("scores")
        for node, place in scores.items() if scores is not None else ():
            yield from self._scores(node, place)
        yield from differs("picks", expect.get("picks"), decision.node or "no node", self._choice())
        is_placed = decision.outcome is Outcome.PLACED
        yield from differs("placed", expect.get("placed"), is_placed, self._outcome())
        yield from differs("pending", expect.get("pending"), not is_placed, self._outcome())
        yield from differs("message", expect.get("message"), decision.message, self._outcome())

    def _status(self, node: str) -> Status | None:
        """Return the status that rejected a node: its own, or the one that rejected the pod everywhere."""
        verdict = self.decision.verdict_of(node)
        own = verdict.status if verdict is not None else None
        prefilter = self.decision.prefilter.status
        return prefilter if prefilter is not None and (own is None or not own.plugin) else own

    def _rejected(self, node: str, place: PlacedValue) -> Iterator[Mismatch]:
        status, field = self._status(node), f"rejected.{node}"
        if status is None:
            verdict = self.decision.verdict_of(node)
            actual = "feasible" if verdict is not None and verdict.feasible else "not decided"
            yield Mismatch(field, "rejected", actual, place.span, self._outcome())
            return
        trace = self._trace(node)
        by = place.get("by")
        rules: object = status.plugin
        if by is not None and not isinstance(by.value, str):
            rules = [part.plugin for part in status.parts or (status,)]
        yield from differs(f"{field}.by", by, rules, trace)
        yield from differs(f"{field}.code", place.get("code"), _word(status), trace)
        reason = place.get("reason")
        one = reason is not None and isinstance(reason.value, str)
        actual_reason = status.message if one else list(status.reasons)
        yield from differs(f"{field}.reason", reason, actual_reason, trace)
        yield from self.cards.refused(node, place.get("cards"))

    def _scores(self, node: str, place: PlacedValue) -> Iterator[Mismatch]:
        verdict = self.decision.verdict_of(node)
        cells = {cell.plugin: cell for cell in verdict.scores} if verdict is not None else {}
        for rule, wanted in place.items():
            field, cell = f"scores.{node}.{rule}", cells.get(rule)
            if cell is None:
                feasible = verdict is not None and verdict.feasible
                actual = "the score does not apply to this pod" if feasible else "the node is not feasible"
                yield Mismatch(field, shown(wanted.value), actual, wanted.span, self._trace(node))
            elif not _in_range(cell.normalized, wanted):
                raw = () if cell.raw == cell.normalized else (f"raw {cell.raw:g}",)
                yield Mismatch(field, _range(wanted), str(cell.normalized), wanted.span, raw)

    def _trace(self, node: str) -> tuple[str, ...]:
        """Return the rule that decided about a node, with its reason and place."""
        status = self._status(node)
        if status is None:
            return (f"`{node}`: passed every predicate",)
        sites = status.sites or ("",) * len(status.reasons)
        return tuple(
            f"`{node}`: {status.plugin} ({_word(status)}): {reason}" + (f"  at {site}" if site else "")
            for reason, site in zip(status.reasons, sites, strict=True)
        )

    def _choice(self) -> tuple[str, ...]:
        """Return lines with the totals and their parts."""
        lines = [
            f"`{verdict.node}`: total {verdict.total} = "
            + " + ".join(f"{cell.plugin} {cell.normalized}x{cell.weight}" for cell in verdict.scores)
            for verdict in sorted(self.decision.verdicts, key=lambda each: -(each.total or 0))
            if verdict.total is not None and verdict.scores
        ]
        return tuple(lines) or self._outcome()

    def _outcome(self) -> tuple[str, ...]:
        return _why_pending(self.decision)


def _compare_room(case: PodCase, decision: Decision) -> Iterator[Mismatch]:
    """Compare the room that the pod makes: the node that is nominated for it, and the evicted pods."""
    node, wanted = decision.nominated, case.expect.get("victims")
    why = (f"placed on `{decision.node}`",) if decision.node else _why_pending(decision)
    yield from differs("nominated", case.expect.get("nominated"), node, why)
    if wanted is not None:
        names = {pod.key: name for name, pod in case.fixtures.bound(case.nodes)}
        victims = [names.get(victim.pod, victim.pod) for victim in decision.victims]
        why = (f"room is made on `{node}`",) if node else why
        yield from differs("victims", wanted, victims, why, in_order=False)


def _why_pending(decision: Decision | None) -> tuple[str, ...]:
    return () if decision is None or not decision.message else (f"{decision.outcome}: {decision.message}",)


def _in_range(score: int, wanted: PlacedValue) -> bool:
    low, high = _bounds(wanted)
    return low <= score <= high


def _bounds(wanted: PlacedValue) -> tuple[int, int]:
    ends = [int(each.text) for each in wanted.each()] or [int(wanted.text)]
    return ends[0], ends[-1]


def _range(wanted: PlacedValue) -> str:
    low, high = _bounds(wanted)
    return str(low) if low == high else f"{low} to {high}"


def _word(status: Status) -> str:
    return _WORDS.get(status.code.name, status.code.label)


_MEANING = ("outcome", "node", "message", "nominatedNode", "victims")
"""The parts of a recorded decision that must be the same again, as keys of its document."""

_WORDS = {
    "UNSCHEDULABLE": "unschedulable",
    "UNRESOLVABLE": "unresolvable",
    "PENDING": "pending",
    "ERROR": "error",
}


def _yaml_lines(value: object) -> tuple[str, ...]:
    text = yaml.safe_dump(value, default_flow_style=None, width=100, sort_keys=False, allow_unicode=True)
    return tuple(f"  {line}" for line in text.splitlines())


def unexpected_faults(
    faults: Sequence[Fault], expect: PlacedValue, recorded: Sequence[str] = ()
) -> Iterator[Mismatch]:
    """Yield the errors that are not expected.

    A case expects an error by naming the rule or plugin under `faults`, where it has to name all of them, or
    by having its text in another field, such as the reason of a rejection. `recorded` errors occur again.
    """
    wanted = expect.get("faults")
    actual = tuple(map(str, faults))
    if wanted is not None:
        names = list(dict.fromkeys(fault.source for fault in faults))
        for each in differs("faults", wanted, names, actual, in_order=False):
            lines = [line for fault in faults for line in traceback_lines(fault)]
            yield Mismatch(each.field, each.expected, each.actual, each.span, each.trace, tuple(lines))
        return
    texts = tuple(_texts(expect))
    for fault in faults:
        if fault.source not in recorded and not any(fault.message in text for text in texts):
            text = str(fault)
            yield Mismatch(
                "faults", "nothing goes wrong", text, expect.span, (), tuple(traceback_lines(fault))
            )


def _texts(place: PlacedValue) -> Iterator[str]:
    if isinstance(place.value, str):
        yield place.value
    for child in place.each():
        yield from _texts(child)
