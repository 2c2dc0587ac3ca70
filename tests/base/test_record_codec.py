"""Records come back from their bytes equal, shared as they were; bytes that hold none raise ValueError."""

from __future__ import annotations

import math
import pickle
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.record_codec import RecordCodec, UnknownRecordError
from kdsl.base.span import Source, Span

CODEC = RecordCodec(("kdsl.base.span", "kdsl.base.diagnostic"))

_SCALARS = st.none() | st.booleans() | st.binary() | st.integers() | st.floats(allow_nan=False) | st.text()
# Not recursive: hypothesis writes out a strategy within a strategy wherever it names the outer one.
_SETS = st.frozensets(_SCALARS, max_size=3)
_HASHABLE = _SCALARS | _SETS | st.tuples(_SCALARS | _SETS, _SCALARS)
_VALUES = st.recursive(
    _HASHABLE | st.sampled_from(Severity),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(_HASHABLE, inner, max_size=4)
        | st.builds(MappingProxyType, st.dictionaries(st.text(), inner, max_size=3))
        | st.builds(Diagnostic, st.text(), st.text(), where=inner)
    ),
    max_leaves=12,
)


@given(_VALUES)
def test_a_value_comes_back(value: object) -> None:
    assert CODEC.decode(CODEC.encode(value)) == value


def test_odd_scalars_come_back() -> None:
    value = [1, 1.0, True, 0, 0.0, -0.0, False, 2**200, math.inf, -math.inf, "\udc80", "\0"]
    decoded = CODEC.decode(CODEC.encode(value))
    assert isinstance(decoded, list)
    assert [(type(each), repr(each)) for each in decoded] == [(type(each), repr(each)) for each in value]
    (nan,) = CODEC.decode(CODEC.encode((math.nan,)))  # type: ignore[misc]
    assert math.isnan(nan)


def test_what_was_shared_stays_shared() -> None:
    source = Source("a.kdsl", "text")
    first, second = CODEC.decode(CODEC.encode((Span(source, 0, 1), Span(source, 1, 2))))  # type: ignore[misc]
    assert first.source is second.source and first.source is not source
    doubled: object = ("x",)
    for _ in range(60):
        doubled = (doubled, doubled)
    encoded = CODEC.encode(doubled)
    assert len(encoded) < 2000
    again = CODEC.decode(encoded)
    for _ in range(60):
        assert isinstance(again, tuple) and again[0] is again[1]
        again = again[0]


def test_given_parts_are_not_encoded_and_come_back_as_they_are() -> None:
    source, another = Source("a.kdsl", "a long text"), Source("b.kdsl", "another text")
    value = [Span(source, 0, 1), source, Span(another, 1, 2)]
    encoded = CODEC.encode(value, (source,))
    assert b"a long text" not in encoded and b"another text" in encoded
    twin = Source("a.kdsl", "a long text")
    first, second, third = CODEC.decode(encoded, (twin,))  # type: ignore[misc]
    assert first.source is twin and second is twin and third.source.text == "another text"
    with pytest.raises(ValueError, match="hold no records"):
        CODEC.decode(encoded)


def test_records_of_one_class_on_several_heights_come_back() -> None:
    inner = Diagnostic("K1", "inner")
    value = (Diagnostic("K2", "outer", where=inner), inner, ((inner,),))  # type: ignore[arg-type]
    assert CODEC.decode(CODEC.encode(value)) == value


def test_depth_is_no_problem() -> None:
    deep: object = ()
    for _ in range(100_000):
        deep = (deep,)
    again, depth = CODEC.decode(CODEC.encode(deep)), 0
    while again:
        assert isinstance(again, tuple)
        (again,), depth = again, depth + 1
    assert depth == 100_000


@pytest.mark.parametrize("value", [{1, 2}, bytearray(b"bytes"), object(), print, Exception("x"), 1j])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(UnknownRecordError):
        CODEC.encode([value])


class _Run:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('code ran')",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        b"\xff\xfe",
        pickle.dumps(_Run()),
        b"null",
        b"[]",
        b"{}",
        b'{"classes":[],"scalars":[],"groups":[]}',
        b'{"classes":["os.system"],"scalars":["true"],"groups":[[6,[0]]]}',
        b'{"classes":["kdsl.base.quantity.Quantity"],"scalars":[1],"groups":[[6,[0]]]}',
        b'{"classes":["kdsl.base.span.Span"],"scalars":[1],"groups":[[6,[0]]]}',
        b'{"classes":["kdsl.base.span.Span"],"scalars":[1],"groups":[[6,[0,0,0,0]]]}',
        b'{"classes":["kdsl.base.span.Span"],"scalars":[1],"groups":[[6,[0,0,0],[0,0]]]}',
        b'{"classes":["kdsl.base.span.Span"],"scalars":[1],"groups":[[6]]}',
        b'{"classes":["kdsl.base.diagnostic.Severity"],"scalars":["NONE"],"groups":[[6,[0]]]}',
        b'{"classes":["kdsl.base.diagnostic.Severity"],"scalars":["ERROR"],"groups":[[6,[0,0]]]}',
        b'{"classes":[],"scalars":[1],"groups":[[0,[7]]]}',
        b'{"classes":[],"scalars":[1],"groups":[[0,[1]]]}',
        b'{"classes":[],"scalars":[1],"groups":[[0,[-1]]]}',
        b'{"classes":[],"scalars":[1],"groups":[[-1,[0]]]}',
        b'{"classes":[],"scalars":[1],"groups":[[9,[0]]]}',
        b'{"classes":[],"scalars":[1],"groups":[[]]}',
        b'{"classes":[],"scalars":[1],"groups":[[0,0]]}',
        b'{"classes":[],"scalars":[1],"groups":[[0,"0"]]}',
        b'{"classes":[],"scalars":[1],"groups":[[0,[0.0]]]}',
        b'{"classes":[],"scalars":[1],"groups":[["0",[0]]]}',
        b'{"classes":[],"scalars":[[]],"groups":[]}',
        b'{"classes":[],"scalars":[1],"groups":[[4,[0]]]}',
        b'{"classes":[],"scalars":[1],"groups":[[2,[0]],[1,[1]]]}',
        b'{"classes":[],"scalars":[1],"nodes":[[0,0]]}',
        b"[" * 100_000,
    ],
)
def test_other_bytes_raise_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="hold no records"):
        CODEC.decode(content)
