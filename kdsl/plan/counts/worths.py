"""What the affinity terms of pods are worth to a question, added up by domain, as terms come and go.

It is what `cluster.requiredAntiAffinityTerms.count(…)` and its like read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.values import INT_MAX, EvalError
from kdsl.plan.counts.kept import Kept
from kdsl.plan.counts.sums import Amounts
from kdsl.plan.counts.terms import Move, TermIndex, placed_terms

_PER_TERM: Final = 128
"""About what a tally takes to know a term, in bytes."""


class Worth(NamedTuple):
    """What a term is worth to a question, the steps that it took to find out, and why it could not be."""

    amount: int
    steps: int
    error: str = ""


_NOTHING: Final = Worth(0, 0)
"""What a term is worth that was not asked about; the steps of all of them are counted together."""


class Appraisal(Protocol):
    """Asks a question about a term: the same term is always worth the same. It must not raise.

    `selecting` is the pod that decides first: terms that do not match it are worth nothing, and it takes the
    same steps to find that out for each of them. None where nothing of the kind is known.
    """

    @property
    def selecting(self) -> PodInfo | None: ...

    def __call__(self, term: PodAffinityTerm, /) -> Worth: ...


@dataclass(slots=True)
class TermSums:
    """What terms are worth, added up by topology key and domain; `total` is over all of them.

    `steps` is what asking all distinct terms took. `mark` is another object after each change.
    """

    by_key: dict[str, Amounts]
    total: int
    steps: int
    mark: object


class TermTally(Kept):
    """What the terms of one kind are worth to one question.

    Of a question that a pod decides only the terms are known that may match it: the others are worth nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        # What of the index was seen.
        self._position = self._growth = -1
        self._worths: dict[PodAffinityTerm, Worth] = {}
        self.latest = TermSums({}, 0, 0, object())
        """The sums over the live snapshot, as they were at the last call."""
        # A number that no worth is beyond, and how many terms could not be asked.
        self._largest = 0
        self._errors = 0

    def is_good(self, index: TermIndex) -> bool:
        """Tell whether `latest` is what it would be anew, the index being up to date."""
        # Where terms are makes no difference if none of them is worth anything.
        return self.version >= (index.moved_at if self._largest else index.edged_at)

    def sums(self, index: TermIndex, snapshot: Snapshot, appraise: Appraisal) -> TermSums:
        """Return the sums over a snapshot, live or an overlay; EvalError where a term could not be asked.

        Those of the live snapshot are good until the next call.

        INVARIANT: every `appraise` that a tally is given finds the same.
        """
        if not self.is_good(index):
            self._refresh(index, appraise)
        if snapshot.is_overlay:
            return self._corrected(index, snapshot, appraise)
        if self._errors:
            _complain(self._worths, map(index.placed_on, snapshot.order.tolist()))
        _check(self._largest, index.count)
        self.version = snapshot.version
        return self.latest

    def _refresh(self, index: TermIndex, appraise: Appraisal) -> None:
        moves = index.since(self._position)
        self._position = index.position
        if moves is not None and self._growth != index.growth:
            for key, amounts in self.latest.by_key.items():
                amounts.refresh(index.column(key))
        self._growth = index.growth
        if moves is None or not self._follow(index, moves, appraise):
            self._rebuild(index, appraise)
        self.nbytes = sum([each.nbytes for each in self.latest.by_key.values()])
        self.nbytes += _PER_TERM * len(self._worths)

    def _learn(self, term: PodAffinityTerm, appraise: Appraisal) -> Worth:
        worth = self._worths.get(term)
        if worth is None:
            worth = self._worths[term] = appraise(term)
            self._largest = max(self._largest, abs(worth.amount))
        return worth

    def _follow(self, index: TermIndex, moves: Sequence[Move], appraise: Appraisal) -> bool:
        """Do to the sums what terms did. Return whether that worked: not where they may be out of range."""
        sums, terms = self.latest, index.count + len(moves)
        for term, number, pods, is_edge in moves:
            worth = self._learn(term, appraise)
            if is_edge:
                sums.steps += pods * worth.steps
                self._errors += pods * bool(worth.error)
                if pods < 0:
                    self._worths.pop(term, None)
            if worth.amount:
                if self._largest * terms > INT_MAX:
                    return False
                self._amounts(index, term.topology_key).add(number, pods * worth.amount)
                sums.total += pods * worth.amount
                sums.mark = object()
        return True

    def _rebuild(self, index: TermIndex, appraise: Appraisal) -> None:
        """Add up anew."""
        known, self._worths, self._largest = self._worths, {}, 0
        pod = appraise.selecting
        asked = list(index.domains if pod is None else index.labels.matching(pod.labels))
        for term in asked:
            worth = self._worths[term] = known.get(term) or appraise(term)
            self._largest = max(self._largest, abs(worth.amount))
        worths = [self._worths[term] for term in asked]
        self._errors = sum([bool(worth.error) for worth in worths])
        steps = sum([worth.steps for worth in worths])
        others = len(index.domains) - len(asked)
        if others:
            other = next(term for term in index.domains if term not in self._worths)
            steps += others * appraise(other).steps
        self.latest = TermSums({}, 0, steps, object())
        if self._largest * index.count > INT_MAX:
            # Nobody gets to see the sums, and moves that follow have nothing to go by.
            self._position = -1
            return
        for term, worth in zip(asked, worths, strict=True):
            if worth.amount:
                amounts, domains = self._amounts(index, term.topology_key), index.domains[term]
                for number, pods in domains.items():
                    amounts.add(number, pods * worth.amount)
                self.latest.total += worth.amount * sum(domains.values())

    def _amounts(self, index: TermIndex, key: str) -> Amounts:
        by_key = self.latest.by_key
        if key not in by_key:
            by_key[key] = Amounts(index.column(key))
        return by_key[key]

    def _corrected(self, index: TermIndex, overlay: Snapshot, appraise: Appraisal) -> TermSums:
        """Return the sums with the changed rows of an overlay in place of the live ones."""
        infos = {row: overlay.info(row) for row in overlay.changed_rows}
        placed = {row: tuple(placed_terms(index.kind, info, info.pods)) for row, info in infos.items()}
        worths = dict(self._worths)
        for term in (term for each in placed.values() for term, _ in each):
            if term not in worths:
                worths[term] = appraise(term)
        new = [worths[term] for term in worths if term not in self._worths and term not in index.domains]
        if self._errors or any(worth.error for worth in new):
            rows = overlay.order.tolist()
            _complain(worths, (placed.get(row, index.placed_on(row)) for row in rows))
        largest = max([self._largest, *(abs(worth.amount) for worth in new)])
        _check(largest, index.count + sum(map(len, placed.values())))
        sums = TermSums(
            {key: amounts.of_overlay() for key, amounts in self.latest.by_key.items()},
            self.latest.total,
            self.latest.steps + sum(worth.steps for worth in new),
            object(),
        )
        for row, terms in placed.items():
            for term, number in index.placed_on(row):
                amount = worths.get(term, _NOTHING).amount
                if amount:
                    sums.by_key[term.topology_key].add(number, -amount)
                    sums.total -= amount
            for term, domain in terms:
                amount = worths[term].amount
                if amount:
                    key = term.topology_key
                    amounts = sums.by_key.get(key)
                    if amounts is None:
                        amounts = sums.by_key[key] = Amounts(index.column(key)).of_overlay()
                    amounts.add(amounts.number_of(domain), amount)
                    sums.total += amount
        return sums


def _complain(
    worths: Mapping[PodAffinityTerm, Worth], rows: Iterable[Iterable[tuple[PodAffinityTerm, object]]]
) -> None:
    """Raise the error of the first term that has one, in visiting order."""
    for terms in rows:
        for term, _ in terms:
            error = worths.get(term, _NOTHING).error
            if error:
                raise EvalError(error)


def _check(largest: int, terms: int) -> None:
    """Raise EvalError where some sum of the worths of so many terms may be out of range."""
    if largest * terms > INT_MAX:
        raise EvalError("integer overflow")
