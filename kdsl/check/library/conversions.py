"""Conversions between types, under CEL's overload ids."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare(
        "bool",
        'From "true", "True", "TRUE", "t", "1" and their opposites; other strings are an error.',
        {"bool_to_bool": "(bool): bool", "string_to_bool": "(string): bool"},
    ),
    declare(
        "bytes",
        "The UTF-8 bytes of a string.",
        {"bytes_to_bytes": "(bytes): bytes", "string_to_bytes": "(string): bytes"},
    ),
    declare(
        "double",
        "The nearest double.",
        {
            "double_to_double": "(double): double",
            "int64_to_double": "(int): double",
            "uint64_to_double": "(uint): double",
            "string_to_double": "(string): double",
        },
    ),
    declare(
        "duration",
        'From Go\'s form, such as "1h30m" or "-1.5s".',
        {"duration_to_duration": "(duration): duration", "string_to_duration": "(string): duration"},
    ),
    declare("dyn", "The same value, its type decided at run time.", "(T): dyn"),
    declare(
        "int",
        "A 64-bit integer: doubles truncate toward zero, timestamps give seconds; out of range is an error.",
        {
            "int64_to_int64": "(int): int",
            "uint64_to_int64": "(uint): int",
            "double_to_int64": "(double): int",
            "string_to_int64": "(string): int",
            "timestamp_to_int64": "(timestamp): int",
        },
    ),
    declare(
        "string",
        "The value as text; bytes must be valid UTF-8.",
        {
            "string_to_string": "(string): string",
            "bool_to_string": "(bool): string",
            "int64_to_string": "(int): string",
            "uint64_to_string": "(uint): string",
            "double_to_string": "(double): string",
            "bytes_to_string": "(bytes): string",
            "timestamp_to_string": "(timestamp): string",
            "duration_to_string": "(duration): string",
            "quantity_to_string": "(quantity): string",
            "semver_to_string": "(semver): string",
            "ip_to_string": "(ip): string",
            "cidr_to_string": "(cidr): string",
        },
    ),
    declare(
        "timestamp",
        "From RFC 3339 text or from seconds since 1970.",
        {
            "timestamp_to_timestamp": "(timestamp): timestamp",
            "string_to_timestamp": "(string): timestamp",
            "int64_to_timestamp": "(int): timestamp",
        },
    ),
    declare("type", "The type of a value.", {"type": "(T): type"}),
    declare(
        "uint",
        "An unsigned 64-bit integer: doubles truncate toward zero; out of range is an error.",
        {
            "uint64_to_uint64": "(uint): uint",
            "int64_to_uint64": "(int): uint",
            "double_to_uint64": "(double): uint",
            "string_to_uint64": "(string): uint",
        },
    ),
)
