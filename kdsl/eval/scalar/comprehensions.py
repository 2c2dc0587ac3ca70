"""Macros over lists and maps. `all` and `exists` absorb errors as `&&` and `||` do; the others do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from kdsl.check.model.typed import Comprehension, Macro
from kdsl.check.model.types import STRING, Type
from kdsl.eval.scalar.frame import Closure, Compile, Frame
from kdsl.eval.scalar.logic import truth
from kdsl.eval.scalar.meter import paying, spend
from kdsl.eval.values import EvalError, Value, from_key, keys_of, kind_of, to_key

Each = Callable[[Frame], Iterator[None]]
"""Binds the variables of a macro to one element after the other."""


def compile_comprehension(expr: Comprehension, compile: Compile) -> Closure:
    """Compile a macro."""
    each = each_of(
        expr.iterable.type, compile(expr.iterable), tuple(variable.slot for variable in expr.variables)
    )
    if expr.macro in _CONDITIONS:
        return _CONDITIONS[expr.macro](each, truth(expr.body, compile))
    if expr.macro is Macro.FILTER:
        return _filter(each, truth(expr.body, compile), expr.variables[0].slot)
    if expr.where is not None:
        each = _where(each, truth(expr.where, compile))
    body = compile(expr.body)
    return paying(_results(expr, each, body), expr.type)


def _results(expr: Comprehension, each: Each, body: Closure) -> Closure:
    """Compile a macro that makes a list or map of the results for each element."""
    match expr.macro:
        case Macro.TRANSFORM_MAP:
            return _transform_map(each, body, expr.variables[0].slot)
        case Macro.TRANSFORM_MAP_ENTRY:
            return _transform_map_entry(each, body)
    return lambda frame: tuple([body(frame) for _ in each(frame)])


def each_of(type_: Type, iterable: Closure, slots: tuple[int, ...]) -> Each:
    """Return a binder of one variable (element or key) or two (index and element, or key and value)."""
    if len(slots) == 1:
        (slot,) = slots
        elements = elements_of(type_)

        def one(frame: Frame) -> Iterator[None]:
            values = iterable(frame)
            listed = elements(values)
            spend(frame, len(values))
            for value in listed:
                frame[slot] = value
                yield

        return one
    first, second = slots
    entries = pairs_of(type_)

    def two(frame: Frame) -> Iterator[None]:
        values = iterable(frame)
        listed = entries(values)
        spend(frame, len(values))
        for key, value in listed:
            frame[first], frame[second] = key, value
            yield

    return two


def elements_of(type_: Type) -> Callable[[Value], Iterable[Value]]:
    """Return a function that lists the elements or keys of a value of the type."""
    return iter if type_.name in ("list", "resources") or _has_plain_keys(type_) else elements


def pairs_of(type_: Type) -> Callable[[Value], Iterable[tuple[Value, Value]]]:
    """Return a function that lists indices and elements, or keys and values, of a value of the type."""
    if type_.name == "list":
        return enumerate
    return _items if type_.name == "resources" or _has_plain_keys(type_) else pairs


def _has_plain_keys(type_: Type) -> bool:
    return type_.name == "map" and type_.args[:1] == (STRING,)


def _items(value: Value) -> Iterable[tuple[Value, Value]]:
    items: Iterable[tuple[Value, Value]] = value.items()
    return items


def elements(value: Value) -> Iterable[Value]:
    """Return the elements of a macro of one variable."""
    match kind_of(value):
        case "list" | "resources":
            items: Iterable[Value] = value
            return items
        case "map":
            return keys_of(value)
    raise EvalError(f"no such overload: a macro over {kind_of(value)}")


def pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    """Return the pairs of a macro of two variables."""
    match kind_of(value):
        case "list":
            return enumerate(value)
        case "resources":
            return _items(value)
        case "map":
            return ((from_key(key), item) for key, item in value.items())
    raise EvalError(f"no such overload: a macro over {kind_of(value)}")


def _all(each: Each, body: Closure) -> Closure:
    def evaluate(frame: Frame) -> Value:
        error: EvalError | None = None
        for _ in each(frame):
            try:
                if not body(frame):
                    return False
            except EvalError as caught:
                error = error or caught
        if error is not None:
            raise error
        return True

    return evaluate


def _exists(each: Each, body: Closure) -> Closure:
    def evaluate(frame: Frame) -> Value:
        error: EvalError | None = None
        for _ in each(frame):
            try:
                if body(frame):
                    return True
            except EvalError as caught:
                error = error or caught
        if error is not None:
            raise error
        return False

    return evaluate


def _exists_one(each: Each, body: Closure) -> Closure:
    # No short cut: an error after the second match is still an error.
    return lambda frame: sum([body(frame) for _ in each(frame)]) == 1


_CONDITIONS: Mapping[Macro, Callable[[Each, Closure], Closure]] = {
    Macro.ALL: _all,
    Macro.EXISTS: _exists,
    Macro.EXISTS_ONE: _exists_one,
}


def _filter(each: Each, body: Closure, slot: int) -> Closure:
    return lambda frame: tuple([frame[slot] for _ in each(frame) if body(frame)])


def _where(each: Each, condition: Closure) -> Each:
    def kept(frame: Frame) -> Iterator[None]:
        for _ in each(frame):
            if condition(frame):
                yield

    return kept


def _transform_map(each: Each, body: Closure, key: int) -> Closure:
    return lambda frame: {to_key(frame[key]): body(frame) for _ in each(frame)}


def _transform_map_entry(each: Each, body: Closure) -> Closure:
    def evaluate(frame: Frame) -> Value:
        result: dict[Value, Value] = {}
        for _ in each(frame):
            entries = body(frame)
            if kind_of(entries) != "map":
                raise EvalError(f"no such overload: transformMapEntry to {kind_of(entries)}")
            for key, value in entries.items():
                if key in result:
                    raise EvalError(f"repeated key: {from_key(key)!r}")
                result[key] = value
        return result

    return evaluate
