"""Lists whose items are known one by one."""

from __future__ import annotations

from collections.abc import Sequence

from kdsl.check.model.typed import Const, ListOf, TypedExpr, TypedItem, Var
from kdsl.check.model.types import INT, Type
from kdsl.eval.ir import Known


def bound(variables: Sequence[Var], place: int, item: TypedExpr) -> dict[int, TypedExpr]:
    """Return the replacements of the one or two variables of a loop for the item at a place."""
    values = (item,) if len(variables) == 1 else (Known.of(item, place, INT), item)
    return {variable.slot: value for variable, value in zip(variables, values, strict=True)}


def items_of(expr: TypedExpr) -> list[TypedExpr] | None:
    """Return the items of a constant list; None for anything else."""
    return known_items(expr) if isinstance(expr, Const) and expr.type.name == "list" else None


def known_items(expr: TypedExpr) -> list[TypedExpr] | None:
    """Return the items of a list literal or constant, if all are constants or variables."""
    match expr:
        case Known(value=tuple() | list() as values):
            (type_,) = expr.type.args
            return [Known.of(expr, value, type_) for value in values]
        case ListOf(items=items) if all(
            not each.optional and isinstance(each.value, (Const, Var)) for each in items
        ):
            return [each.value for each in items]
    return None


def list_of(expr: TypedExpr, type_: Type, items: tuple[TypedExpr, ...]) -> Known | ListOf:
    """Return a list in place of `expr`, a constant one if all of its items are."""
    if all(isinstance(item, Known) for item in items):
        return Known.of(expr, tuple([item.value for item in items if isinstance(item, Known)]), type_)
    return ListOf(
        type=type_,
        time=expr.time,
        reads=expr.reads,
        span=expr.span,
        items=tuple([TypedItem(item, False) for item in items]),
    )
