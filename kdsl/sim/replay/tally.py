"""Counts of a replay beside its differences, and the limits of its answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kdsl.cycle.decision import Decision, Outcome
from kdsl.explain.differences import Counts, Mode, room_of
from kdsl.hooks.faults import merged
from kdsl.report.tables import plural
from kdsl.sim.replay.survey import Survey


@dataclass(slots=True)
class _Run:
    """Counts of one side; `texts` are the first texts of its errors."""

    preemptions: int = 0
    victims: int = 0
    errors: int = 0
    faults: Counter[Any] = field(default_factory=Counter)
    texts: dict[Any, str] = field(default_factory=dict)

    def take(self, decision: Decision) -> None:
        self.preemptions += bool(decision.victims)
        self.victims += len(decision.victims)
        self.errors += bool(decision.faults)
        for fault in merged(decision.faults):
            self.faults[fault.key] += 1
            self.texts.setdefault(fault.key, str(fault.on(())))

    def listed(self) -> tuple[tuple[str, int], ...]:
        return tuple((self.texts[key], count) for key, count in self.faults.most_common())


@dataclass(slots=True)
class Tally:
    """Counts decisions of both sides as they are made."""

    skipped: int = 0
    unlike_record: int = 0
    _old: _Run = field(default_factory=_Run)
    _new: _Run = field(default_factory=_Run)

    def take(self, old: Decision, new: Decision, recorded: Decision) -> None:
        """Count one recorded attempt."""
        self.skipped += old.outcome is new.outcome is Outcome.SKIPPED
        self.unlike_record += not is_alike(old, recorded)
        self.take_old(old)
        self.take_new(new)

    def take_old(self, decision: Decision) -> None:
        """Count a decision of the old side."""
        self._old.take(decision)

    def take_new(self, decision: Decision) -> None:
        """Count a decision of the new side."""
        self._new.take(decision)

    @property
    def faults(self) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
        """Return the errors of both sides with their number of decisions, the most frequent first."""
        return self._old.listed(), self._new.listed()

    def counts(self, **others: int) -> Counts:
        """Return all counts."""
        old, new = self._old, self._new
        return Counts(
            skipped=self.skipped,
            unlike_record=self.unlike_record,
            preemptions=new.preemptions,
            victims=new.victims,
            errors=new.errors,
            old_preemptions=old.preemptions,
            old_victims=old.victims,
            old_errors=old.errors,
            **others,
        )


def is_alike(decision: Decision, recorded: Decision) -> bool:
    """Return whether a decision has the node and the victims of a recorded one."""
    return decision.given_node == recorded.given_node and room_of(decision) == room_of(recorded)


def notes_of(survey: Survey, mode: Mode) -> tuple[str, ...]:
    """Return the limits of an answer that follow from the record."""
    notes: list[str] = []
    if not survey.is_whole:
        notes.append("the record has no last line: it was cut off, or its run has not ended")
    if survey.dropped:
        lack = (
            f"the record lacks {plural(survey.dropped, 'decision')} that came faster than they were written"
        )
        more = ", and their pods arrive later" if mode is Mode.CUMULATIVE else ""
        notes.append(f"{lack}{more}")
    if survey.settled and mode is Mode.INDEPENDENT:
        held = plural(survey.settled, "result")
        notes.append(f"{held} of pods that a Permit plugin held: only the attempts were decided again")
    return tuple(notes)
