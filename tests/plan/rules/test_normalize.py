from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.check.model.types import INT
from kdsl.eval.values import INT_MIN
from kdsl.lang.choices import Normalization
from kdsl.plan.compile.expression import compile_expression
from kdsl.plan.rules.normalize import normalize, normalize_close, normalize_few, truncate, whole

from tests.plan.lab import check

scores = st.lists(st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 500)), min_size=1, max_size=8)
signed = st.lists(st.one_of(st.integers(-(2**62), 2**62), st.integers(-5, 300)), min_size=1, max_size=8)


def default_normalize(raw: list[int], reverse: bool) -> list[int]:
    """DefaultNormalizeScore, score by score."""
    highest = max(0, *raw) if raw else 0
    if highest == 0:
        return [100] * len(raw) if reverse else raw
    scaled = [100 * abs(score) // highest * (1 if score >= 0 else -1) for score in raw]
    return [100 - score for score in scaled] if reverse else scaled


@given(scores)
def test_max_and_reverse(raw: list[int]) -> None:
    column = np.array(raw, dtype=np.int64)
    assert normalize(Normalization.MAX, column).tolist() == default_normalize(raw, reverse=False)
    assert normalize(Normalization.REVERSE, column).tolist() == default_normalize(raw, reverse=True)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=8))
def test_negative_scores_truncate_toward_zero(raw: list[int]) -> None:
    column = np.array(raw, dtype=np.int64)
    assert normalize(Normalization.MAX, column).tolist() == default_normalize(raw, reverse=False)


@given(signed)
def test_minmax(raw: list[int]) -> None:
    span = max(raw) - min(raw)
    expected = [int(100.0 * (float(score - min(raw)) / float(span))) if span else 0 for score in raw]
    assert normalize(Normalization.MINMAX, np.array(raw, dtype=np.int64)).tolist() == expected


NEAR_AND_FAR = st.sets(st.one_of(st.integers(-(2**62), 2**62), st.integers(-5, 300)), min_size=1, max_size=8)


WITHOUT_RULE = st.sampled_from([kind for kind in Normalization if kind is not Normalization.BY])


@given(WITHOUT_RULE, NEAR_AND_FAR)
def test_few_scores_are_normalised_as_many_are(kind: Normalization, raw: set[int]) -> None:
    scores = sorted(raw)
    assert list(normalize_few(kind, scores)) == normalize(kind, np.array(scores, np.int64)).tolist()


@given(WITHOUT_RULE, st.lists(st.integers(-20, 20), max_size=8), st.sampled_from((0, 90, -(2**53), 2**53)))
def test_close_scores_are_normalised_as_all_are(kind: Normalization, near: list[int], base: int) -> None:
    raw = np.array([base + each for each in near], np.int64)
    close = normalize_close(kind, raw)
    is_close = bool(near) and max(near) - min(near) < 16 and base + min(near) >= -(2**53)
    assert (close is not None) is is_close
    if close is not None:
        points, places = close
        normalized = normalize(kind, raw).tolist()
        assert np.array(points, np.int64).take(places).tolist() == normalized
        assert {points[0], points[-1]} == {min(normalized), max(normalized)}


def test_a_missing_score_is_close_to_none() -> None:
    raw = np.full(3, INT_MIN, np.int64)
    assert normalize_close(Normalization.MAX, raw) is None


def test_minmax_divides_first_as_kube_scheduler_does() -> None:
    raw = np.array([0, 29, 100], dtype=np.int64)
    assert normalize(Normalization.MINMAX, raw).tolist() == [0, 28, 100]


def test_extremes() -> None:
    raw = np.array([-(2**63), 2**63 - 1], dtype=np.int64)
    assert normalize(Normalization.MINMAX, raw).tolist() == [0, 100]
    assert normalize(Normalization.MAX, raw).tolist() == [-100, 100]
    assert truncate(np.array([1e30, -1e30, -1.9])).tolist() == [2**63 - 1024, -(2**63), -1]


@pytest.mark.parametrize("kind", [kind for kind in Normalization if kind is not Normalization.BY])
def test_no_scores(kind: Normalization) -> None:
    assert normalize(kind, np.array([], dtype=np.float64)).tolist() == []


def test_doubles() -> None:
    raw = np.array([0.0, 0.25, 0.5])
    assert normalize(Normalization.MAX, raw).tolist() == [0, 50, 100]
    assert normalize(Normalization.REVERSE, raw).tolist() == [100, 50, 0]
    assert normalize(Normalization.NONE, raw * 9).tolist() == [0, 2, 4]
    assert normalize(Normalization.REVERSE, np.zeros(2)).tolist() == [100, 100]


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        (Normalization.MAX, [1.7e308, 8.5e307, 0.0], [100, 50, 0]),
        (Normalization.REVERSE, [1.7e308, 8.5e307, 0.0], [0, 50, 100]),
        (Normalization.MINMAX, [1.7e308, 0.0, -1.7e308], [100, 50, 0]),
        (Normalization.MINMAX, [1.0, -1e308], [100, 0]),
        (Normalization.MAX, [5e-324, 0.0], [100, 0]),
    ],
)
def test_doubles_near_the_end(kind: Normalization, raw: list[float], expected: list[int]) -> None:
    assert normalize(kind, np.array(raw)).tolist() == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_no_double_wraps_or_warns(raw: list[float]) -> None:
    for kind in (Normalization.MAX, Normalization.REVERSE, Normalization.MINMAX, Normalization.NONE):
        for before, after in zip(raw, normalize(kind, np.array(raw)).tolist(), strict=True):
            if kind is Normalization.REVERSE and before < 0:
                assert after >= 100
            elif kind is Normalization.MINMAX:
                assert 0 <= after <= 100


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_one_double_is_truncated_as_many_are(value: float) -> None:
    assert whole(value) == truncate(np.array([value])).item()


ROWS = re.findall(
    r"^\| `normalize (\w+)` \|.*\| `(.+)` \|$",
    (Path(__file__).parents[3] / "docs/language.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize(("kind", "formula"), ROWS, ids=[kind for kind, _ in ROWS])
@given(raw=st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=6))
def test_each_kind_is_short_for_the_formula_of_the_docs(kind: str, formula: str, raw: list[int]) -> None:
    types = dict.fromkeys(("value", "min", "max"), INT)
    expression = compile_expression(check(formula, types))
    expected = [expression((value, min(raw), max(raw))) for value in raw]
    assert normalize(Normalization(kind), np.array(raw, np.int64)).tolist() == expected


def test_the_docs_have_a_formula_for_each_kind() -> None:
    assert {kind for kind, _ in ROWS} == {"max", "reverse", "minmax"}
