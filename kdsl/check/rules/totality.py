"""Totality: the expressions that never fail. A sort key must be total, since a queue cannot order pods by
errors.

Keys of maps are not checked here: `kdsl.check.expressions.guards` requires a proof of each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.check.library import LIBRARY
from kdsl.check.model.rule_set import CheckedFn, Fns
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallFn, CallOf, Comprehension, Const, Macro, MapOf, TypedExpr, Var
from kdsl.check.model.types import ERROR, INT
from kdsl.check.names.externals import PLUGINS
from kdsl.check.rules.ranges import stays_in_range

# Functions and overloads with a value for all arguments of their types. All methods of views are total, too.
TOTAL_FUNCTIONS = frozenset(
    {
        "_&&_", "_||_", "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "_[?_]",
        "size", "contains", "startsWith", "endsWith", "lowerAscii", "upperAscii", "trim", "reverse",
        "join", "isSorted", "distinct", "sort", "@sortBy", "first", "last",
        "optional.of", "optional.ofNonZeroValue", "optional.none", "hasValue",
        "or", "orValue", "isQuantity", "isInteger", "sign", "asApproximateFloat", "isGreaterThan",
        "isLessThan", "compareTo", "type", "math.greatest", "math.least", "math.sign", "math.isNaN",
        "math.isInf", "math.isFinite", "math.sqrt", "math.log", "math.ceil", "math.floor", "math.round",
        "math.trunc", "json.read",
    }
)  # fmt: skip
TOTAL_OVERLOADS = frozenset(
    {
        "index_map", "index_resources", "optional_list_index_value", "optional_map_index_value",
        "list_index_of", "list_last_index_of", "string_index_of_string", "string_last_index_of_string",
        "string_replace_string_string", "string_split_string", "add_double", "add_string", "add_bytes",
        "add_list", "subtract_double", "multiply_double", "divide_double", "negate_double",
        "bool_to_bool", "int64_to_int64", "timestamp_to_int64", "uint64_to_uint64", "double_to_double",
        "int64_to_double", "uint64_to_double", "string_to_string", "bool_to_string", "int64_to_string",
        "uint64_to_string", "double_to_string", "timestamp_to_string", "duration_to_string",
        "quantity_to_string", "string_to_bytes", "bytes_to_bytes", "timestamp_to_timestamp",
        "duration_to_duration",
    }
)  # fmt: skip
_ARITHMETIC = frozenset({"_+_", "_-_", "_*_", "sum", "add", "sub", "math.abs"})

Failing = tuple[TypedExpr, str]


class Totality:
    """Finds expressions that may fail. `lets` are the values of variables by slot, `fns` the functions by
    name.

    Each `let` and function is analysed once, however often it is used.
    """

    def __init__(self, lets: Mapping[int, TypedExpr], fns: Fns) -> None:
        self._lets = lets
        self._fns = fns
        self._failures: dict[int | str, Failing | None] = {}

    def why_it_may_fail(self, expr: TypedExpr) -> Failing | None:
        """Return the part of the expression that may fail, and the reason; None for a total expression."""
        if expr.type == ERROR:
            return None
        for child in children(expr):
            failing = self.why_it_may_fail(child)
            if failing is not None:
                return failing
        why = None
        match expr:
            case Var(slot=slot) if slot in self._lets:
                why = self._why_value_may_fail(slot, self._lets[slot])
            case CallFn(fn=name):
                fn = self._fns.get(name)
                if isinstance(fn, CheckedFn):
                    why = self._why_value_may_fail(name, fn.body)
                elif name.startswith(f"{PLUGINS}."):
                    why = "a function of a plugin may fail"
            case CallOf(function="_+_" | "_-_" | "_*_" | "-_", type=type_) if type_ == INT:
                why = None if stays_in_range(expr, self._lets) else _call(expr)
            case CallOf():
                why = _call(expr)
            case MapOf(entries=entries) if not all(isinstance(entry.key, Const) for entry in entries):
                why = "two keys may be equal"
            case Comprehension(macro=Macro.TRANSFORM_MAP_ENTRY):
                why = "two keys may be equal"
            case _:
                pass
        return None if why is None else (expr, why)

    def _why_value_may_fail(self, key: int | str, value: TypedExpr) -> str | None:
        """Return the reason why the value of a `let` or the body of a function may fail."""
        if key not in self._failures:
            # A function has a frame of its own: the slots of its variables are not those of the rule's
            # `let`s.
            inner = self if isinstance(key, int) else Totality({}, self._fns)
            inner._failures = self._failures
            self._failures[key] = inner.why_it_may_fail(value)
        failing = self._failures[key]
        return None if failing is None else f"in it, `{failing[0].span.text}` may fail: {failing[1]}"


def _call(expr: CallOf) -> str | None:
    if expr.function in TOTAL_FUNCTIONS or expr.overload in TOTAL_OVERLOADS or expr.function not in LIBRARY:
        return None
    if expr.overload == "string_to_quantity" and isinstance(expr.args[0], Const):
        return None
    if expr.function == "-_":
        return "the smallest int has no negative: write `desc` behind the key instead"
    if expr.function in _ARITHMETIC:
        limit = ": limit its parts by `math.least` and `math.greatest`" if expr.type == INT else ""
        return f"the result may be out of range{limit}"
    if expr.function in ("_/_", "_%_", "ratio"):
        # The smallest int divided by -1 is out of range, too.
        safe = isinstance(expr.args[1], Const) and expr.args[1].value not in (0, -1)
        return None if safe else "the divisor may be zero or -1"
    if expr.overload == "index_list":
        return "there may be no such item: `[?…].orValue(…)` gives a default"
    if expr.overload == "optional_value":
        return "the optional may be empty: `orValue(…)` gives a default"
    return f"`{expr.function}` may fail"
