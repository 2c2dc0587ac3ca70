"""Kubernetes quantities: the functions Kubernetes adds to CEL, and `ratio`. Operators are in `operators`.

Members that quantities and semantic versions both have are declared here.
"""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare(
        "quantity",
        'A quantity from its text, such as "1500m" or "2Gi".',
        {"string_to_quantity": "(string): quantity"},
    ),
    declare("isQuantity", "Is the text a quantity?", "(string): bool"),
    declare(
        "ratio",
        "The first quantity divided by the second, as a double; a second of zero is an error.",
        {"ratio_quantity": "(quantity, quantity): double"},
    ),
    declare(
        "asInteger",
        "The quantity as an int; an error if it is not whole or too large.",
        {"quantity_as_integer": "quantity.(): int"},
    ),
    declare("isInteger", "Would `asInteger` succeed?", "quantity.(): bool"),
    declare("asApproximateFloat", "The nearest double.", "quantity.(): double"),
    declare(
        "sign",
        "-1, 0 or 1.",
        {"quantity_sign": "quantity.(): int", "sign_quantity": "(quantity): int"},
    ),
    declare(
        "add",
        "The sum with a quantity or an int.",
        {"quantity_add": "quantity.(quantity): quantity", "quantity_add_int": "quantity.(int): quantity"},
    ),
    declare(
        "sub",
        "The difference from a quantity or an int.",
        {"quantity_sub": "quantity.(quantity): quantity", "quantity_sub_int": "quantity.(int): quantity"},
    ),
    declare(
        "isGreaterThan",
        "The quantity is greater than the other.",
        {
            "quantity_is_greater_than": "quantity.(quantity): bool",
            "semver_is_greater_than": "semver.(semver): bool",
        },
    ),
    declare(
        "isLessThan",
        "The quantity is less than the other.",
        {
            "quantity_is_less_than": "quantity.(quantity): bool",
            "semver_is_less_than": "semver.(semver): bool",
        },
    ),
    declare(
        "compareTo",
        "-1, 0 or 1 as it is less, equal or greater.",
        {"quantity_compare_to": "quantity.(quantity): int", "semver_compare_to": "semver.(semver): int"},
    ),
)
