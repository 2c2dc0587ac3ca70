"""Distributions, their fits and generated workloads."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.errors import KdslError
from kdsl.lab.time.distributions import (
    LONGEST,
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Fitted,
    Lognormal,
    Pareto,
    Weibull,
    distribution_of,
    draws,
    uniforms,
    written,
)
from kdsl.lab.time.fitting import fit, fits
from kdsl.lab.time.generating import FitTo, Generation, Wave, durations_of, gaps_of, generated
from kdsl.lab.time.openb import PodTimes, read_times, timed_trace

from tests.lab.small import PODS, small_trace

FITTED: list[Fitted] = [Exponential(60.0), Lognormal(3.0, 0.5), Weibull(1.7, 40.0), Pareto(2.5, 4.0)]


def test_numbers_are_those_of_pcg64() -> None:
    # numpy.random.Generator(PCG64(SeedSequence([42, 1]))).random() gives the same 53 bits.
    import numpy as np

    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence([42, 1]))).random(4)
    found = list(islice(uniforms(42, 1), 4))
    assert found == pytest.approx(list(expected), abs=2**-52)
    assert found != list(islice(uniforms(42, 2), 4)) != list(islice(uniforms(43, 2), 4))


@pytest.mark.parametrize("distribution", FITTED)
@given(share=st.floats(0.001, 0.999))
def test_quantiles_invert_distribution_functions(distribution: Fitted, share: float) -> None:
    assert distribution.cdf(distribution.quantile(share)) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("distribution", FITTED)
def test_densities_are_slopes(distribution: Fitted) -> None:
    for value in (5.0, 17.0, 80.0):
        slope = (distribution.cdf(value + 1e-4) - distribution.cdf(value - 1e-4)) / 2e-4
        assert math.exp(distribution.log_density(value)) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("distribution", FITTED)
def test_a_fit_finds_what_was_drawn(distribution: Fitted) -> None:
    values = list(islice(draws(distribution, 7, 0), 4000))
    found = fit(type(distribution).__name__.lower(), values)
    for key, value in written(distribution)[type(distribution).__name__.lower()].items():
        assert getattr(found.distribution, key) == pytest.approx(value, rel=0.06)
    assert found.distance < 0.03
    # No other parameters near it are likelier.
    for key in distribution.__slots__:
        for factor in (0.99, 1.01):
            near = {each: getattr(found.distribution, each) for each in distribution.__slots__}
            near[key] *= factor
            other = type(distribution)(**near)
            assert sum(map(other.log_density, values)) < found.log_likelihood
    assert type(fits(values)[0].distribution) is type(distribution)


def test_fits_by_hand() -> None:
    assert fit("exponential", [1, 2, 6]).distribution == Exponential(3.0)
    pareto = fit("pareto", [1, math.e, math.e**2]).distribution
    assert pareto == Pareto(pytest.approx(1.0), 1.0)
    lognormal = fit("lognormal", [1, math.e**2]).distribution
    assert lognormal == Lognormal(pytest.approx(1.0), pytest.approx(1.0))
    # 0 counts as half a second. F(0.5) = 0.3297 and F(2) = 0.7981 with mean 1.25.
    assert fit("exponential", [0, 2]).distribution == Exponential(1.25)
    assert fit("exponential", [0, 2]).distance == pytest.approx(1 - math.exp(-0.4))
    with pytest.raises(KdslError, match="two different values"):
        fit("weibull", [3, 3])


def test_long_times_have_an_end() -> None:
    assert max(islice(draws(Pareto(0.05, 1e11), 1, 0), 50)) == LONGEST


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("constant", {"value": 5}, Constant(5.0)),
        ("exponential", {"mean": 60}, Exponential(60.0)),
        ("empirical", [3, 1], Empirical((1.0, 3.0))),
    ],
)
def test_distributions_of_experiments(name: str, values: object, expected: Distribution) -> None:
    assert distribution_of(name, values) == expected


def test_empirical_values_are_drawn_alike() -> None:
    drawn = list(islice(draws(Empirical((1.0, 2.0, 4.0)), 3, 0), 3000))
    assert [drawn.count(value) / 3000 for value in (1.0, 2.0, 4.0)] == pytest.approx([1 / 3] * 3, abs=0.03)


@given(st.floats(0, 1), st.floats(0, 1e6), st.floats(0, 86400))
def test_a_waves_time_inverts_its_integral(amplitude: float, passed: float, peak: float) -> None:
    wave = Wave(amplitude, 86400.0, peak)
    assert wave.passed(wave.time(passed)) == pytest.approx(passed, abs=1e-3)


def test_a_wave_moves_arrivals_to_its_peak(tmp_path: Path) -> None:
    how = Generation(4000, Exponential(60), Constant(1), Wave(1.0, 86400, 43200))
    work = generated(small_trace(tmp_path), {}, how, 1)
    whole_days = [arrival.at for arrival in work.arrivals if arrival.at < 2 * 86400]
    at_day = sum(21600 <= at % 86400 < 64800 for at in whole_days)
    # The half around the peak has 1/2 + 1/pi of them.
    assert at_day / len(whole_days) == pytest.approx(0.5 + 1 / math.pi, abs=0.03)
    assert [each.at for each in work.arrivals] == sorted(each.at for each in work.arrivals)


def test_generated_workloads(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    how = Generation(500, Exponential(30), Lognormal(4, 1))
    work = generated(trace, {}, how, 42)
    assert work == generated(trace, {}, how, 42)
    other = generated(trace, {}, how, 43)
    assert [each.at for each in other.arrivals] != [each.at for each in work.arrivals]
    assert (work.arrivals[0].pod.name, work.arrivals[-1].pod.name) == ("pod-000", "pod-499")
    assert work.arrivals[-1].at == pytest.approx(500 * 30, rel=0.2)
    # Kinds are drawn from the trace: half a card and 4 cores is that of three of ten pods.
    of_kind = sum(each.pod.requests.amount("nvidia.com/gpu-milli") == 500 for each in work.arrivals)
    assert of_kind / 500 == pytest.approx(0.3, abs=0.08)
    # Fewer pods are the first ones of more.
    fewer = generated(trace, {}, Generation(100, Exponential(30), Lognormal(4, 1)), 42)
    assert [each.at for each in fewer.arrivals] == [each.at for each in work.arrivals[:100]]


TIMES = """name,creation_time,deletion_time,scheduled_time
pod-00,100,160,100
pod-01,110,130,
pod-02,110,210,120
"""


def test_the_times_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(TIMES, encoding="utf-8")
    times, diagnostics = read_times(path)
    assert diagnostics == ()
    assert gaps_of(times) == [10.0, 0.0] and durations_of(times) == [60.0, 90.0]
    trace = small_trace(tmp_path)
    rows = PODS.splitlines()
    assert rows[1].startswith("pod-00")
    work = timed_trace(replace(trace, pods=trace.pods[:3]), times)
    assert [(each.pod.name, each.at, each.duration, each.deleted) for each in work.arrivals] == [
        ("pod-00", 0.0, 60.0, None),
        ("pod-01", 10.0, None, 30.0),
        ("pod-02", 10.0, 90.0, None),
    ]
    how = Generation(3, FitTo("empirical"), FitTo("exponential"))
    made = generated(trace, times, how, 1)
    assert {round(b.at - a.at) for a, b in zip(made.arrivals, made.arrivals[1:], strict=False)} <= {0, 10}
    exact = generated(trace, times, Generation(3, FitTo("empirical"), Exponential(75.0)), 1)
    assert made == exact


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ("pod-00,100,90,95", "deletion_time"),
        ("pod-00,100,200,90", "scheduled_time"),
        ("pod-00,-1,200,90", "creation_time"),
        ("pod-00,1e3,200,90", "creation_time"),
    ],
)
def test_wrong_times_are_diagnostics(tmp_path: Path, row: str, place: str) -> None:
    path = tmp_path / "times.csv"
    path.write_text(f"{TIMES.splitlines()[0]}\n{row}\n", encoding="utf-8")
    times, diagnostics = read_times(path)
    assert times == {} and diagnostics[0].where == f"{path}:2: {place}"
    assert isinstance(PodTimes("x", 1, 2, None).duration, type(None))
