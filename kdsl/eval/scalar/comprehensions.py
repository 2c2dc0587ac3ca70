"""Macros over lists and maps. `all` and `exists` absorb errors as `&&` and `||` do; the others do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kdsl.check.model.typed import CallOf, Comprehension, Macro, TypedExpr, Var
from kdsl.check.model.types import STRING, Type
from kdsl.eval.scalar.frame import Closure, Frame
from kdsl.eval.scalar.logic import deciding, truth, undecided
from kdsl.eval.scalar.meter import paying, spend, spending
from kdsl.eval.scalar.program import NamedObjects
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError, Value, from_key, keys_of, kind_of, overflow, to_key

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler

_LISTS: Final = (Macro.MAP, Macro.TRANSFORM_LIST)
"""The macros that make a list of results."""
_MAKERS: Final = (*_LISTS, Macro.TRANSFORM_MAP, Macro.TRANSFORM_MAP_ENTRY)
"""The macros that make a list or map of results."""

Each = Callable[[Frame], Iterator[None]]
"""Binds the variables of a macro to one element after the other."""


def comprehension_text(expr: Comprehension, out: Compiler) -> str:
    """Write a macro."""
    text = out.function(lambda: comprehension_lines(expr, out, out.text(expr.iterable)))
    return paid_if_made(expr, text, out)


def paid_if_made(expr: Comprehension, text: str, out: Compiler) -> str:
    """Charge a macro that `text` evaluates for all that it makes, if it makes a list or map of results."""
    return paying(text, expr.type, out) if expr.macro in _MAKERS else text


def comprehension_lines(expr: Comprehension, out: Compiler, values: str) -> list[str]:
    """Write the lines of a macro over the value of the text `values`. What it makes is not paid for."""
    head, loop = _loop(values, expr.iterable.type, slots_text(expr.variables), len(expr.variables), out)
    if expr.macro in (Macro.ALL, Macro.EXISTS):
        # An element that decides makes up for errors with the others.
        found = expr.macro is Macro.EXISTS
        decided = deciding(truth(expr.body, out), found)
        return ["e = None", *head, f"{loop}:", *[f"  {line}" for line in decided], *undecided(found)]
    first = f"f[{expr.variables[0].slot}]"
    if expr.where is not None:
        loop += f" if {truth(expr.where, out)}"
    match expr.macro:
        case Macro.FILTER:
            made = f"tuple([{first} {loop} if {truth(expr.body, out)}])"
        case Macro.EXISTS_ONE:
            # No short cut: an error after the second match is still an error.
            made = f"sum([{truth(expr.body, out)} {loop}]) == 1"
        case Macro.TRANSFORM_MAP:
            made = f"{{{out.name(to_key)}({first}): {out.text(expr.body)} {loop}}}"
        case Macro.TRANSFORM_MAP_ENTRY:
            made = f"{out.name(_joined)}({out.text(expr.body)} {loop})"
        case _:
            made = f"tuple([{out.text(expr.body)} {loop}])"
    return [*head, f"return {made}"]


def sum_text(expr: CallOf, out: Compiler) -> str | None:
    """Write the sum of a macro's integers without the list of them; None for other calls."""
    match expr.overload, expr.args:
        case "list_sum_int", (Comprehension() as made,) if made.macro in _LISTS:
            return out.function(lambda: _sum(made, out))
    return None


def _sum(expr: Comprehension, out: Compiler) -> list[str]:
    """Write the lines of a sum: an item that fails comes before an overflow of the items before it."""
    loop = loop_lines(expr.iterable, expr.variables, out)
    if expr.where is not None:
        loop.append(f"  if not {truth(expr.where, out)}: continue")
    overflows = f"if not {out.name(INT_MIN)} <= t <= {out.name(INT_MAX)}: o = True"
    added = [f"  t += {out.text(expr.body)}", "  n += 1", f"  {overflows}"]
    paid = ["m = f[-1]", *spending("n"), f"if o: raise {out.name(overflow)}()"]
    return ["t = n = 0", "o = False", *loop, *added, *paid, "return t"]


def slots_text(variables: Sequence[Var]) -> str:
    """Write the slots of loop variables, to be assigned."""
    return ", ".join([f"f[{variable.slot}]" for variable in variables])


def loop_lines(iterable: TypedExpr, variables: Sequence[Var], out: Compiler) -> list[str]:
    """Write the head of a loop of one or two variables over elements, keys or pairs, paid for."""
    head, loop = _loop(out.text(iterable), iterable.type, slots_text(variables), len(variables), out)
    return [*head, f"{loop}:"]


def each_of(type_: Type, iterable: Closure, slots: Sequence[int]) -> Each:
    """Return a binder of one variable (element or key) or two (index and element, or key and value)."""
    out = NamedObjects()
    names = ", ".join([f"f[{slot}]" for slot in slots])
    head, loop = _loop(f"{out.name(iterable)}(f)", type_, names, len(slots), out)
    return out.function([*head, f"{loop}:", "  yield"])


def _loop(
    values: str, type_: Type, names: str, count: int, out: Compiler | NamedObjects
) -> tuple[list[str], str]:
    """Write the lines that take the steps for visiting a list or map, and the `for` over it, for a statement
    or a comprehension of Python.
    """
    if not _is_plain(type_):
        return [], f"for {names} in {out.name(paid_elements if count == 1 else paid_pairs)}(f, {values})"
    items = "v" if count == 1 else "enumerate(v)" if type_.name == "list" else "v.items()"
    return [f"v = {values}", "m = f[-1]", *spending("len(v)")], f"for {names} in {items}"


def paid_elements(frame: Frame, values: Value) -> Iterable[Value]:
    """Return the elements of a macro of one variable, paid for."""
    kind = kind_of(values)
    if kind not in ("list", "resources", "map"):
        raise EvalError(f"no such overload: a macro over {kind}")
    spend(frame, len(values))
    listed: Iterable[Value] = keys_of(values) if kind == "map" else values
    return listed


def paid_pairs(frame: Frame, values: Value) -> Iterable[tuple[Value, Value]]:
    """Return the pairs of a macro of two variables, paid for."""
    listed = pairs(values)
    spend(frame, len(values))
    return listed


def _is_plain(type_: Type) -> bool:
    """Return whether values of a type list their elements, or keys and values, as Python does."""
    return type_.name in ("list", "resources") or (type_.name == "map" and type_.args[:1] == (STRING,))


def pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    """Return the pairs of a macro of two variables."""
    match kind_of(value):
        case "list":
            return enumerate(value)
        case "resources":
            items: Iterable[tuple[Value, Value]] = value.items()
            return items
        case "map":
            return ((from_key(key), item) for key, item in value.items())
    raise EvalError(f"no such overload: a macro over {kind_of(value)}")


def _joined(maps: Iterable[Value]) -> Value:
    """Join the maps that `transformMapEntry` makes for each element; EvalError for a repeated key."""
    result: dict[Value, Value] = {}
    for entries in maps:
        if kind_of(entries) != "map":
            raise EvalError(f"no such overload: transformMapEntry to {kind_of(entries)}")
        for key, value in entries.items():
            if key in result:
                raise EvalError(f"repeated key: {from_key(key)!r}")
            result[key] = value
    return result
