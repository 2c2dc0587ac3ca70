"""Distributions fitted to values by maximum likelihood, and how well they fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.base.errors import KdslError
from kdsl.lab.time.distributions import Exponential, Fitted, Lognormal, Pareto, Weibull

LEAST: Final = 0.5
"""Times of traces are whole seconds: a value of 0 counts as half a second."""
FAMILIES: Final = ("exponential", "lognormal", "weibull", "pareto")
_STEPS: Final = 200
_CLOSE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class FittedDistribution:
    """A fitted distribution.

    `distance` is that of Kolmogorov and Smirnov: the largest difference between its distribution function and
    that of the values, from 0 to 1. `aic` is Akaike's criterion; the fit with the least one is best.
    """

    distribution: Fitted
    log_likelihood: float
    aic: float
    distance: float


def fit(name: str, values: Sequence[float]) -> FittedDistribution:
    """Fit a distribution of a family to values of at least 0; KdslError unless two of them differ."""
    data = sorted(max(float(value), LEAST) for value in values)
    if len(data) < 2 or data[0] == data[-1]:
        raise KdslError(
            f"a distribution is fitted to at least two different values, there are {len(set(data))}"
        )
    match name:
        case "exponential":
            found: Fitted = Exponential(math.fsum(data) / len(data))
        case "lognormal":
            found = _lognormal(data)
        case "weibull":
            found = _weibull(data)
        case "pareto":
            found = _pareto(data)
        case _:
            raise ValueError(name)
    likelihood = math.fsum(map(found.log_density, data))
    parameters = len(found.__slots__)
    return FittedDistribution(found, likelihood, 2 * parameters - 2 * likelihood, _distance(found, data))


def fits(values: Sequence[float]) -> list[FittedDistribution]:
    """Fit all families; the best one comes first."""
    return sorted((fit(name, values) for name in FAMILIES), key=lambda each: each.aic)


def _lognormal(data: Sequence[float]) -> Lognormal:
    logs = list(map(math.log, data))
    mu = math.fsum(logs) / len(logs)
    return Lognormal(mu, math.sqrt(math.fsum((log - mu) ** 2 for log in logs) / len(logs)))


def _pareto(data: Sequence[float]) -> Pareto:
    least = data[0]
    return Pareto(len(data) / math.fsum(math.log(value / least) for value in data), least)


def _weibull(data: Sequence[float]) -> Weibull:
    """Solve sum(x^k ln x) / sum(x^k) - 1 / k = mean(ln x) for the shape k by Newton's method."""
    # The values are divided by the largest one: then no power overflows, and the shape is the same.
    largest = data[-1]
    logs = [math.log(value / largest) for value in data]
    mean = math.fsum(logs) / len(logs)
    variance = math.fsum((log - mean) ** 2 for log in logs) / len(logs)
    # The start is the shape of the same variance of logarithms.
    shape = math.pi / math.sqrt(6 * variance)
    for _ in range(_STEPS):
        powers = [math.exp(shape * log) for log in logs]
        zero = math.fsum(powers)
        one = math.fsum(map(float.__mul__, powers, logs)) / zero
        two = math.fsum(power * log * log for power, log in zip(powers, logs, strict=True)) / zero
        value = one - 1 / shape - mean
        step = value / (two - one * one + 1 / (shape * shape))
        # A shape is positive.
        following = shape - step if step < shape else shape / 2
        if abs(following - shape) <= _CLOSE * shape:
            break
        shape = following
    scale = largest * (math.fsum(math.exp(shape * log) for log in logs) / len(logs)) ** (1 / shape)
    return Weibull(shape, scale)


def _distance(found: Fitted, data: Sequence[float]) -> float:
    size = len(data)
    return max(
        max(abs(share - at / size), abs(share - (at + 1) / size))
        for at, share in enumerate(map(found.cdf, data))
    )
