"""Laws of types: joins and assignment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kdsl.check.expressions.unify import Unifier, settle
from kdsl.check.library import LIBRARY
from kdsl.check.model.types import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NOTHING,
    NULL,
    QUANTITY,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)
from kdsl.check.views.view import load_views

STRICT = Unifier(load_views(), strict=True)
LOOSE = Unifier(load_views(), strict=False)
LEAVES = st.sampled_from(
    [BOOL, INT, UINT, DOUBLE, STRING, QUANTITY, NOTHING, Type("Pod"), Type("QueuedPod"), Type("Node")]
)
TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(list_of),
        inner.map(optional_of),
        st.tuples(st.just(STRING), inner).map(lambda each: map_of(*each)),
    ),
    max_leaves=4,
)


@given(TYPES, TYPES)
def test_a_join_takes_both(left: Type, right: Type) -> None:
    joined = STRICT.join(left, right)
    assert joined == STRICT.join(right, left)
    if joined is not None:
        assert STRICT.accepts(joined, left) and STRICT.accepts(joined, right)


@given(TYPES)
def test_a_type_joined_with_itself_or_nothing_stays(type_: Type) -> None:
    assert STRICT.join(type_, type_) == STRICT.join(type_, NOTHING) == type_
    assert STRICT.accepts(type_, type_)
    assert STRICT.join(type_, DYN) in (DYN, type_)


@given(TYPES, TYPES, TYPES)
def test_joins_are_associative(first: Type, second: Type, third: Type) -> None:
    assert STRICT.join_all([first, second, third]) == STRICT.join_all([third, second, first])


def test_a_queued_pod_is_a_pod() -> None:
    assert STRICT.accepts(Type("Pod"), Type("QueuedPod"))
    assert not STRICT.accepts(Type("QueuedPod"), Type("Pod"))
    assert STRICT.join(list_of(Type("Pod")), list_of(Type("QueuedPod"))) == list_of(Type("Pod"))


def test_null_stands_for_what_may_be_absent_where_types_are_loose() -> None:
    assert LOOSE.join(NULL, optional_of(INT)) == LOOSE.join(optional_of(INT), NULL) == optional_of(INT)
    assert LOOSE.join(NULL, INT) is None
    assert STRICT.join(NULL, optional_of(INT)) is None


def test_type_parameters_bind_to_the_join() -> None:
    equals = LIBRARY["_==_"].overloads[0]
    assert STRICT.match(equals, [INT, INT]) == BOOL
    assert STRICT.match(equals, [list_of(NOTHING), list_of(INT)]) == BOOL
    assert STRICT.match(equals, [INT, DOUBLE]) is None
    (or_value,) = LIBRARY["orValue"].overloads
    assert STRICT.match(or_value, [optional_of(NOTHING), INT]) == INT
    assert STRICT.match(or_value, [optional_of(INT), STRING]) is None


def test_a_variadic_overload_takes_one_or_more() -> None:
    overload = next(each for each in LIBRARY["math.least"].overloads if each.id == "math_least_int")
    assert STRICT.match(overload, [INT]) == STRICT.match(overload, [INT, INT, INT]) == INT
    assert STRICT.match(overload, []) is None
    assert STRICT.match(overload, [INT, DOUBLE]) is None


def test_what_stays_unknown_settles_as_dyn() -> None:
    assert settle(list_of(optional_of(NOTHING))) == list_of(optional_of(DYN))
