"""Operators by CEL's names. Overload ids are those of the CEL specification where it has one."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare


def _comparison(name: str, word: str, doc: str) -> Function:
    """Declare an ordering operator: within each ordered type, and across the three numeric ones."""
    overloads = {
        f"{word}_{kind}": f"({kind}, {kind}): bool"
        for kind in ("bool", "string", "bytes", "timestamp", "duration", "quantity", "semver")
    }
    if name in ("_<=_", "_>=_"):
        overloads[f"{word}_resources"] = "(resources, resources): bool"
    numbers = {"int64": "int", "uint64": "uint", "double": "double"}
    for left, left_type in numbers.items():
        for right, right_type in numbers.items():
            suffix = left if left == right else f"{left}_{right}"
            overloads[f"{word}_{suffix}"] = f"({left_type}, {right_type}): bool"
    return declare(name, doc, overloads)


FUNCTIONS: tuple[Function, ...] = (
    declare(
        "_?_:_",
        "One of two values, by a condition; the other is not evaluated.",
        {"conditional": "(bool, T, T): T"},
    ),
    declare(
        "_&&_",
        "Both sides hold; false on one side absorbs an error on the other.",
        {"logical_and": "(bool, bool): bool"},
    ),
    declare(
        "_||_",
        "At least one side holds; true on one side absorbs an error on the other.",
        {"logical_or": "(bool, bool): bool"},
    ),
    declare("!_", "The opposite of a condition.", {"logical_not": "(bool): bool"}),
    declare("_==_", "Equal; numbers of different types are equal by value.", {"equals": "(T, T): bool"}),
    declare("_!=_", "Not equal.", {"not_equals": "(T, T): bool"}),
    _comparison("_<_", "less", "Less than, in the type's own order."),
    _comparison("_<=_", "less_equals", "Less than or equal; for `resources`, each of them."),
    _comparison("_>_", "greater", "Greater than, in the type's own order."),
    _comparison("_>=_", "greater_equals", "Greater than or equal; for `resources`, each of them."),
    declare(
        "@in",
        "The value is an item of the list, a key of the map, or a named resource.",
        {
            "in_list": "(T, list(T)): bool",
            "in_map": "(K, map(K, V)): bool",
            "in_resources": "(string, resources): bool",
        },
    ),
    declare(
        "_[_]",
        "The item at an index from 0, or the value of a key; an error (0 of `resources`) if missing.",
        {
            "index_list": "(list(T), int): T",
            "index_map": "(map(K, V), K): V",
            "index_resources": "(resources, string): quantity",
            "optional_list_index_value": "(optional(list(T)), int): optional(T)",
            "optional_map_index_value": "(optional(map(K, V)), K): optional(V)",
        },
    ),
    declare(
        "_[?_]",
        "The item at an index or the value of a key, or `optional.none()` if there is none.",
        {
            "list_optindex_optional_int": "(list(T), int): optional(T)",
            "map_optindex_optional_value": "(map(K, V), K): optional(V)",
            "optional_list_optindex_optional_int": "(optional(list(T)), int): optional(T)",
            "optional_map_optindex_optional_value": "(optional(map(K, V)), K): optional(V)",
        },
    ),
    declare(
        "_+_",
        "Sum, or concatenation; integer overflow is an error.",
        {
            "add_int64": "(int, int): int",
            "add_uint64": "(uint, uint): uint",
            "add_double": "(double, double): double",
            "add_string": "(string, string): string",
            "add_bytes": "(bytes, bytes): bytes",
            "add_list": "(list(T), list(T)): list(T)",
            "add_duration_duration": "(duration, duration): duration",
            "add_duration_timestamp": "(duration, timestamp): timestamp",
            "add_timestamp_duration": "(timestamp, duration): timestamp",
            "add_quantity": "(quantity, quantity): quantity",
            "add_resources": "(resources, resources): resources",
        },
    ),
    declare(
        "_-_",
        "Difference; integer overflow is an error.",
        {
            "subtract_int64": "(int, int): int",
            "subtract_uint64": "(uint, uint): uint",
            "subtract_double": "(double, double): double",
            "subtract_duration_duration": "(duration, duration): duration",
            "subtract_timestamp_duration": "(timestamp, duration): timestamp",
            "subtract_timestamp_timestamp": "(timestamp, timestamp): duration",
            "subtract_quantity": "(quantity, quantity): quantity",
            "subtract_resources": "(resources, resources): resources",
        },
    ),
    declare(
        "_*_",
        "Product; integer overflow is an error.",
        {
            "multiply_int64": "(int, int): int",
            "multiply_uint64": "(uint, uint): uint",
            "multiply_double": "(double, double): double",
            "multiply_quantity_int64": "(quantity, int): quantity",
            "multiply_int64_quantity": "(int, quantity): quantity",
        },
    ),
    declare(
        "_/_",
        "Quotient, truncated toward zero unless double; division by zero is an error unless double.",
        {
            "divide_int64": "(int, int): int",
            "divide_uint64": "(uint, uint): uint",
            "divide_double": "(double, double): double",
            "divide_quantity_int64": "(quantity, int): quantity",
            "divide_quantity": "(quantity, quantity): int",
        },
    ),
    declare(
        "_%_",
        "Remainder with the sign of the dividend; zero as divisor is an error.",
        {"modulo_int64": "(int, int): int", "modulo_uint64": "(uint, uint): uint"},
    ),
    declare("-_", "The negative.", {"negate_int64": "(int): int", "negate_double": "(double): double"}),
)
