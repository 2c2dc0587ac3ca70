"""CEL's encoder extension, base64; and JSON, which annotations hold."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare("base64.encode", "The bytes in base64, padded.", "(bytes): string"),
    declare("base64.decode", "The bytes of a base64 text, padded or not.", "(string): bytes"),
    declare(
        "json.decode",
        "The value of a JSON text: maps, lists, texts, truth values, nulls; whole numbers are ints, others"
        " doubles.",
        "(string): dyn",
    ),
    declare(
        "json.read",
        "The same, or none if the text is not JSON or has more than 100 levels.",
        "(string): optional(dyn)",
    ),
    declare(
        "json.value",
        "The same value as a JSON value: maps and lists that contain one may contain other types as well.",
        "(T): dyn",
    ),
    declare("json.encode", "A value as JSON without blanks; the keys of maps stay in order.", "(T): string"),
)
