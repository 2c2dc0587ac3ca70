"""Formulas over named sizes, such as `4 + 3·node.taints·pod.tolerations`: polynomials without negative parts.

They are upper bounds: the larger of two is the sum of the larger of each of their terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

Monomial = tuple[str, ...]
"""Names of sizes in alphabetic order, one as often as it is a factor; empty for a constant."""

MAX_TERMS = 64
MAX_DEGREE = 8
_NO_BOUND = "unbounded"


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of products; with more than `MAX_TERMS` terms, or `MAX_DEGREE` factors, it is unbounded."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def of(cls, constant: int) -> Formula:
        return cls((((), constant),) if constant else ())

    @classmethod
    def size(cls, name: str) -> Formula:
        return cls((((name,), 1),))

    def __add__(self, other: Formula | int) -> Formula:
        return _combined(self, _formula(other), lambda left, right: left + right)

    def __mul__(self, other: Formula | int) -> Formula:
        terms: Counter[Monomial] = Counter()
        for left, factor in self.terms:
            for right, by in _formula(other).terms:
                terms[tuple(sorted((*left, *right)))] += factor * by
        return _of(terms)

    def larger(self, other: Formula) -> Formula:
        """Return a formula that is nowhere below either."""
        return _combined(self, other, max)

    @property
    def is_bounded(self) -> bool:
        return self != UNBOUNDED

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it is about."""
        return frozenset(name for monomial, _ in self.terms for name in monomial if name != _NO_BOUND)

    def at(self, sizes: Callable[[str], int]) -> int | None:
        """Return the value for given sizes; None if it is unbounded."""
        if not self.is_bounded:
            return None
        return sum(factor * prod(map(sizes, monomial)) for monomial, factor in self.terms)

    def largest_term(self, sizes: Callable[[str], int]) -> Formula:
        """Return the largest term."""
        return Formula((max(self.terms, key=lambda term: term[1] * prod(map(sizes, term[0]))),))

    def __str__(self) -> str:
        return " + ".join(_shown(factor, monomial) for monomial, factor in self.terms) or "0"


UNBOUNDED = Formula((((_NO_BOUND,), 1),))
ZERO = Formula()
ONE = Formula.of(1)


def total(formulas: Iterable[Formula]) -> Formula:
    """Return the sum of formulas."""
    return sum(formulas, ZERO)


def _formula(value: Formula | int) -> Formula:
    return Formula.of(value) if isinstance(value, int) else value


def _combined(left: Formula, right: Formula, choose: Callable[[int, int], int]) -> Formula:
    ours, theirs = dict(left.terms), dict(right.terms)
    return _of({each: choose(ours.get(each, 0), theirs.get(each, 0)) for each in ours.keys() | theirs.keys()})


def _of(terms: Mapping[Monomial, int]) -> Formula:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    too_long = len(kept) > MAX_TERMS or any(len(monomial) > MAX_DEGREE for monomial in kept)
    if too_long or any(_NO_BOUND in monomial for monomial in kept):
        return UNBOUNDED
    return Formula(tuple(sorted(kept.items(), key=lambda term: (len(term[0]), term[0]))))


def _shown(factor: int, monomial: Monomial) -> str:
    powers = [name if power == 1 else f"{name}^{power}" for name, power in Counter(monomial).items()]
    return "·".join([f"{factor:,}", *powers] if factor != 1 or not monomial else powers)
