"""Distributions of gaps between arrivals and of durations, in seconds.

Numbers are drawn by inverting the distribution function: one uniform number gives one value, so equal seeds
give equal values with every version of numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np

_NORMAL: Final = NormalDist()
_DOUBLE: Final = 2.0**-53
LONGEST: Final = 1e11
"""Longer times, of more than 3000 years, count as this one."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same value."""

    value: float

    def quantile(self, share: float) -> float:
        return self.value


@dataclass(frozen=True, slots=True)
class Exponential:
    """Gaps of a Poisson process."""

    mean: float

    def quantile(self, share: float) -> float:
        return -self.mean * math.log1p(-share)

    def cdf(self, value: float) -> float:
        return -math.expm1(-value / self.mean)

    def log_density(self, value: float) -> float:
        return -math.log(self.mean) - value / self.mean


@dataclass(frozen=True, slots=True)
class Lognormal:
    """The logarithm is normal with mean `mu` and standard deviation `sigma`."""

    mu: float
    sigma: float

    def quantile(self, share: float) -> float:
        return math.exp(self.mu + self.sigma * _NORMAL.inv_cdf(share))

    def cdf(self, value: float) -> float:
        return _NORMAL.cdf((math.log(value) - self.mu) / self.sigma)

    def log_density(self, value: float) -> float:
        z = (math.log(value) - self.mu) / self.sigma
        return -z * z / 2 - math.log(self.sigma * value) - math.log(2 * math.pi) / 2


@dataclass(frozen=True, slots=True)
class Weibull:
    """The distribution function is 1 - exp(-(x / scale) ^ shape)."""

    shape: float
    scale: float

    def quantile(self, share: float) -> float:
        return float(self.scale * (-math.log1p(-share)) ** (1 / self.shape))

    def cdf(self, value: float) -> float:
        return -math.expm1(-((value / self.scale) ** self.shape))

    def log_density(self, value: float) -> float:
        ratio = value / self.scale
        return float(
            math.log(self.shape / self.scale) + (self.shape - 1) * math.log(ratio) - ratio**self.shape
        )


@dataclass(frozen=True, slots=True)
class Pareto:
    """The distribution function is 1 - (least / x) ^ shape for x >= least."""

    shape: float
    least: float

    def quantile(self, share: float) -> float:
        return float(self.least * (1 - share) ** (-1 / self.shape))

    def cdf(self, value: float) -> float:
        return float(1 - (self.least / value) ** self.shape) if value > self.least else 0.0

    def log_density(self, value: float) -> float:
        if value < self.least:
            return -math.inf
        return math.log(self.shape / value) + self.shape * math.log(self.least / value)


@dataclass(frozen=True, slots=True)
class Empirical:
    """One of some values, each as likely as the others; `values` are sorted."""

    values: tuple[float, ...]

    def quantile(self, share: float) -> float:
        return self.values[int(share * len(self.values))]


Fitted: TypeAlias = Exponential | Lognormal | Weibull | Pareto
Distribution: TypeAlias = Constant | Empirical | Fitted

_NAMES: Final[Mapping[str, type[Constant | Fitted]]] = {
    "constant": Constant,
    "exponential": Exponential,
    "lognormal": Lognormal,
    "weibull": Weibull,
    "pareto": Pareto,
}


def distribution_of(name: str, values: Any) -> Distribution:
    """Return a distribution of an experiment: its name and its parameters, or the values of `empirical`."""
    if name == "empirical":
        return Empirical(tuple(sorted(map(float, values))))
    return _NAMES[name](**{key: float(value) for key, value in values.items()})


def written(found: Fitted) -> dict[str, dict[str, float]]:
    """Return a distribution as experiments write it."""
    name = type(found).__name__.lower()
    return {name: {key: getattr(found, key) for key in found.__slots__}}


def uniforms(seed: int, stream: int) -> Iterator[float]:
    """Yield numbers between 0 and 1, both excluded: numpy's PCG64, seeded with a seed and the number of a
    stream.
    """
    # Its raw numbers stay the same from version to version, other methods of numpy's generators need not.
    bits = np.random.PCG64(np.random.SeedSequence([seed, stream]))
    while True:
        yield ((int(bits.random_raw()) >> 11) + 0.5) * _DOUBLE


def draws(distribution: Distribution, seed: int, stream: int) -> Iterator[float]:
    """Yield values of a distribution, none longer than `LONGEST`."""
    quantile: Callable[[float], float] = distribution.quantile
    for share in uniforms(seed, stream):
        try:
            yield min(quantile(share), LONGEST)
        except OverflowError:
            yield LONGEST


def drawn_from(things: Sequence[Any], seed: int, stream: int) -> Iterator[Any]:
    """Yield random elements of a sequence."""
    return (things[int(share * len(things))] for share in uniforms(seed, stream))
