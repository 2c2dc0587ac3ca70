"""The counts of affinity terms for a question, summed by domain and updated as terms come and go.

`cluster.requiredAntiAffinityTerms.count(…)` and the like read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.selector_index import Scope, scopes_of_pod
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar.aggregate import Question
from kdsl.eval.values import INT_MAX, EvalError
from kdsl.plan.counts.sums import DomainSums
from kdsl.plan.counts.terms import Move, TermIndex, placed_terms

_PER_TERM: Final = 128
"""The approximate bytes of a remembered term."""


class TermCount(Struct, frozen=True):
    """The count of one term: the amount, the steps taken, and the error."""

    amount: int
    steps: int
    error: str = ""


_NOTHING: Final = TermCount(0, 0)
"""The count of a term that was not asked about; the steps of such terms are counted together."""


class TermSums(Struct, eq=False):
    """The counts of terms, summed by topology key and domain; `total` is the sum over all.

    `steps` is the cost of asking all distinct terms. `mark` is replaced at each change. The keys stay the
    same.
    """

    by_key: dict[str, DomainSums]
    total: int
    steps: int
    mark: object


class TermTally:
    """The counts of the terms of one kind for one question.

    If a pod decides the question, only the terms that may match it are kept; the others count 0.
    """

    def __init__(self) -> None:
        # The last version of the live snapshot for which it was valid.
        self.version = -1
        # The position in the log of the index.
        self._position = self._growth = -1
        self._counts: dict[PodAffinityTerm, TermCount] = {}
        # The steps of all terms in `_counts`.
        self._steps = 0
        # The count of every term that cannot match the pod; None if it is not known yet.
        self._other: TermCount | None = None
        # The pod that decided the question at last, its labels and its scopes.
        self._pod: PodInfo | None = None
        self._labels: set[tuple[str, str] | None]
        self._scopes: set[Scope]
        self.latest = TermSums({}, 0, 0, object())
        """The sums over the live snapshot, as they were at the last call."""
        # An upper bound of all amounts, and the number of terms with errors.
        self._largest = 0
        self._errors = 0

    @property
    def nbytes(self) -> int:
        """Return the approximate size."""
        columns = sum([amounts.nbytes for amounts in self.latest.by_key.values()])
        return columns + _PER_TERM * len(self._counts)

    def is_valid(self, index: TermIndex) -> bool:
        """Return whether `latest` is current, provided that the index is."""
        # The places of terms do not matter while every amount is 0.
        return self.version >= (index.moved_at if self._largest else index.distinct_changed_at)

    def sums(self, index: TermIndex, snapshot: Snapshot, question: Question) -> TermSums:
        """Return the sums over a snapshot, live or an overlay; EvalError if a term could not be counted.

        The sums of the live snapshot are valid until the next call.

        INVARIANT: all questions that a tally is given have the same answers. The pods that decide them may
        differ in labels that no selector names, and terms require none of these.
        """
        if not self.is_valid(index):
            self._refresh(index, question)
        if snapshot.is_overlay:
            return self._corrected(index, snapshot, question)
        if self._errors:
            _raise_first_error(self._counts, map(index.placed_on, snapshot.order.tolist()))
        _check(self._bound(index.count), index.count)
        self.version = snapshot.version
        return self.latest

    def amounts_of(self, index: TermIndex, node: NodeInfo, pods: Iterable[PodInfo]) -> list[int]:
        """Return the amount that each of some pods of a node has in the latest sums."""
        counts, kind = self._counts, index.kind
        return [
            sum([counts.get(term, _NOTHING).amount for term, _ in placed_terms(kind, node, (pod,))])
            for pod in pods
        ]

    def counts_of_more(
        self, index: TermIndex, node: NodeInfo, pods: Iterable[PodInfo], question: Question
    ) -> list[TermCount]:
        """Return the count of each term that further pods would bring to a node; EvalError if one fails."""
        found: list[TermCount] = []
        for term, _ in placed_terms(index.kind, node, pods):
            count = self._counts.get(term) or _counted(term, question)
            if count.error:
                raise EvalError(count.error)
            found.append(count)
        return found

    def has_room_for(self, index: TermIndex, more: Sequence[TermCount] = ()) -> bool:
        """Return whether any sum of twice as many terms is in range, with `more` terms."""
        terms = 2 * (index.count + len(more))
        return max([self._bound(terms), *[abs(each.amount) for each in more]]) * terms <= INT_MAX

    def _bound(self, terms: int) -> int:
        """Return an upper bound of all amounts; the largest if a sum of `terms` may be out of range."""
        if self._largest * terms > INT_MAX:
            # The term with the largest amount may be gone.
            self._largest = max([abs(count.amount) for count in self._counts.values()], default=0)
        return self._largest

    def _refresh(self, index: TermIndex, question: Question) -> None:
        selecting = question.selecting
        # Terms that do not match it count 0, all for the same steps.
        pod = selecting if isinstance(selecting, PodInfo) else None
        moves = index.moves.since(self._position)
        self._position = index.moves.position
        if moves is not None and self._growth != index.growth:
            for key, amounts in self.latest.by_key.items():
                amounts.refresh(index.column(key))
        self._growth = index.growth
        if moves is None or not self._follow(index, moves, pod, question):
            self._rebuild(index, pod, question)
        self.latest.steps = self._steps + self._steps_of_others(index, question)

    def _count_of(self, term: PodAffinityTerm, question: Question) -> TermCount:
        count = self._counts.get(term)
        if count is None:
            count = self._counts[term] = _counted(term, question)
            self._largest = max(self._largest, abs(count.amount))
        return count

    def _steps_of_others(self, index: TermIndex, question: Question) -> int:
        """Return the steps of the terms that cannot match the pod: each counts 0, for the same steps."""
        others = len(index.domains) - len(self._counts)
        if not others:
            return 0
        if self._other is None:
            other = next(term for term in index.domains if term not in self._counts)
            self._other = _counted(other, question)
        return others * self._other.steps

    def _follow(
        self, index: TermIndex, moves: Sequence[Move], pod: PodInfo | None, question: Question
    ) -> bool:
        """Apply the moves of terms to the sums; `pod` decides first, if any. Return false if the sums may be
        out of range.
        """
        terms = index.count + len(moves)
        if pod is not None and moves:
            if self._pod is not pod:
                self._pod = pod
                self._labels, self._scopes = {None, *pod.labels.entries.items()}, set(scopes_of_pod(pod))
            labels, scopes = self._labels, self._scopes
            moves = [
                move
                for move in moves
                if not (labels.isdisjoint(move.required) or scopes.isdisjoint(move.scopes))
            ]
        for move in moves:
            term, pods = move.term, move.pods
            count = self._count_of(term, question)
            if move.is_first_or_last:
                self._steps += pods * count.steps
                self._errors += pods * bool(count.error)
                if pods < 0:
                    self._counts.pop(term, None)
            if count.amount:
                if self._largest * terms > INT_MAX:
                    return False
                self._amounts(index, term.topology_key).add(move.number, pods * count.amount)
                self.latest.total += pods * count.amount
                self.latest.mark = object()
        return True

    def _rebuild(self, index: TermIndex, pod: PodInfo | None, question: Question) -> None:
        """Recompute the sums; `pod` decides first, if any."""
        known, self._counts = self._counts, {}
        self._largest = self._errors = self._steps = 0
        matching = index.labels.matching
        for term in index.domains if pod is None else matching(pod.labels, scopes_of_pod(pod)):
            count = known[term] if term in known else _counted(term, question)
            self._counts[term] = count
            self._errors += bool(count.error)
            self._steps += count.steps
            if not -self._largest <= count.amount <= self._largest:
                self._largest = abs(count.amount)
        self.latest = TermSums({}, 0, 0, object())
        if self._largest * index.count > INT_MAX:
            # The sums are not read, and later moves cannot be applied.
            self._position = -1
            return
        for term, count in self._counts.items():
            if count.amount:
                domains = index.domains[term]
                self._amounts(index, term.topology_key).add_all(domains, count.amount)
                self.latest.total += count.amount * sum(domains.values())

    def _amounts(self, index: TermIndex, key: str) -> DomainSums:
        latest = self.latest
        if key not in latest.by_key:
            by_key = {**latest.by_key, key: DomainSums(index.column(key))}
            latest = self.latest = TermSums(by_key, latest.total, latest.steps, object())
        return latest.by_key[key]

    def _corrected(self, index: TermIndex, overlay: Snapshot, question: Question) -> TermSums:
        """Return the sums with the changed rows of an overlay in place of the live ones."""
        infos = {row: overlay.info(row) for row in overlay.changed_rows}
        placed = {row: tuple(placed_terms(index.kind, info, info.pods)) for row, info in infos.items()}
        counts = dict(self._counts)
        for term in (term for each in placed.values() for term, _ in each):
            if term not in counts:
                counts[term] = _counted(term, question)
        new = [counts[term] for term in counts if term not in self._counts and term not in index.domains]
        if self._errors or any(count.error for count in new):
            rows = overlay.order.tolist()
            _raise_first_error(counts, (placed.get(row, index.placed_on(row)) for row in rows))
        most = index.count + sum(map(len, placed.values()))
        _check(max([self._bound(most), *(abs(count.amount) for count in new)]), most)
        sums = TermSums(
            {key: amounts.of_overlay() for key, amounts in self.latest.by_key.items()},
            self.latest.total,
            self.latest.steps + sum(count.steps for count in new),
            object(),
        )
        for row, terms in placed.items():
            for term, number in index.placed_on(row):
                amount = counts.get(term, _NOTHING).amount
                if amount:
                    sums.by_key[term.topology_key].add(number, -amount)
                    sums.total -= amount
            for term, domain in terms:
                amount = counts[term].amount
                if amount:
                    key = term.topology_key
                    amounts = sums.by_key.get(key)
                    if amounts is None:
                        amounts = sums.by_key[key] = DomainSums(index.column(key)).of_overlay()
                    amounts.add(amounts.number_of(domain), amount)
                    sums.total += amount
        return sums


def _counted(term: PodAffinityTerm, question: Question) -> TermCount:
    """Return the count of a term. Each has its own steps, as each node has."""
    own = question.meter()
    try:
        amount = int(question.answer(term, own))
    except EvalError as error:
        return TermCount(0, min(own.limit, own.limit - own.left), error.message)
    return TermCount(amount, own.limit - own.left)


def _raise_first_error(
    counts: Mapping[PodAffinityTerm, TermCount], rows: Iterable[Iterable[tuple[PodAffinityTerm, object]]]
) -> None:
    """Raise the first error of a term, in visiting order."""
    for terms in rows:
        for term, _ in terms:
            error = counts.get(term, _NOTHING).error
            if error:
                raise EvalError(error)


def _check(largest: int, terms: int) -> None:
    """Raise EvalError if a sum of `terms` amounts may be out of range."""
    if largest * terms > INT_MAX:
        raise EvalError("integer overflow")
