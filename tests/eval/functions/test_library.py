from __future__ import annotations

from kdsl.check.library import LIBRARY
from kdsl.eval.functions import BY_NAME, IMPLEMENTATIONS
from kdsl.eval.scalar.logic import LAZY
from kdsl.eval.scalar.searches import SEARCHES
from kdsl.plan.columns.items import CALLS
from kdsl.plan.columns.kernels import KERNELS


def test_implementations_are_those_that_are_declared() -> None:
    control_flow = {"conditional", "logical_and", "logical_or"}
    functions = [function for name, function in LIBRARY.items() if name not in SEARCHES]
    declared = {overload.id for function in functions for overload in function.overloads}
    assert SEARCHES.keys() <= LIBRARY.keys()
    assert declared - control_flow == IMPLEMENTATIONS.keys()


def test_every_implementation_is_of_a_declared_function() -> None:
    used = set(map(id, IMPLEMENTATIONS.values()))
    assert BY_NAME.keys() <= IMPLEMENTATIONS.keys() | LIBRARY.keys()
    assert [name for name, each in BY_NAME.items() if id(each) not in used] == []


def test_control_flow_is_compiled_by_name() -> None:
    assert LAZY.keys() <= LIBRARY.keys()


def test_overload_ids_are_unique() -> None:
    ids = [overload.id for function in LIBRARY.values() for overload in function.overloads]
    assert len(ids) == len(set(ids))


def test_every_column_form_is_of_a_function() -> None:
    for kernels in (KERNELS, CALLS):
        assert kernels.keys() <= IMPLEMENTATIONS.keys()
