"""The declared library: complete, documented, and implemented to the last overload."""

from __future__ import annotations

from kdsl.check.library import LIBRARY, TYPE_NAMES
from kdsl.check.rules.totality import TOTAL_FUNCTIONS, TOTAL_OVERLOADS
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.scalar.searches import SEARCHES

OVERLOADS = [overload for function in LIBRARY.values() for overload in function.overloads]
# Their arguments are not all evaluated: the compiler has a form of its own for each.
LAZY = {"logical_and", "logical_or", "conditional"}


def test_overload_ids_are_unique() -> None:
    ids = [overload.id for overload in OVERLOADS]
    assert len(ids) == len(set(ids))


def test_every_overload_is_implemented_and_nothing_else() -> None:
    searches = {overload.id for name in SEARCHES for overload in LIBRARY[name].overloads}
    assert {overload.id for overload in OVERLOADS} - LAZY - searches == set(IMPLEMENTATIONS)


def test_every_function_is_documented_in_one_line() -> None:
    for function in LIBRARY.values():
        assert function.doc.endswith((".", "?")) and "\n" not in function.doc, function.name
        assert function.overloads, function.name


def test_two_overloads_never_take_the_same_arguments() -> None:
    for function in LIBRARY.values():
        forms = [(overload.args, overload.member, overload.variadic) for overload in function.overloads]
        assert len(forms) == len(set(forms)), function.name


def test_totality_speaks_of_what_exists() -> None:
    assert LIBRARY.keys() >= TOTAL_FUNCTIONS
    assert {overload.id for overload in OVERLOADS} >= TOTAL_OVERLOADS


def test_type_names_have_no_arguments() -> None:
    assert all(not type_.args for type_ in TYPE_NAMES.values())
