from __future__ import annotations

from kdsl.check.library import LIBRARY
from kdsl.plan.functions import IMPLEMENTATIONS
from kdsl.plan.scalar.logic import LAZY


def test_what_is_declared_is_implemented_and_nothing_else() -> None:
    control_flow = {"conditional", "logical_and", "logical_or"}
    declared = {overload.id for function in LIBRARY.values() for overload in function.overloads}
    assert declared - control_flow == IMPLEMENTATIONS.keys()


def test_control_flow_is_compiled_by_name() -> None:
    assert LAZY.keys() <= LIBRARY.keys()


def test_overload_ids_are_unique() -> None:
    ids = [overload.id for function in LIBRARY.values() for overload in function.overloads]
    assert len(ids) == len(set(ids))
