"""CEL's encoder extension: base64."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare("base64.encode", "The bytes in base64, padded.", {"base64_encode_bytes": "(bytes): string"}),
    declare(
        "base64.decode",
        "The bytes of a base64 text, padded or not.",
        {"base64_decode_string": "(string): bytes"},
    ),
)
