"""Strings: CEL's standard functions and its string extension. Offsets count code points."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare("contains", "The string contains the substring.", "string.(string): bool"),
    declare("startsWith", "The string has the prefix.", "string.(string): bool"),
    declare("endsWith", "The string has the suffix.", "string.(string): bool"),
    declare(
        "matches",
        "Some part of the string matches the RE2 pattern.",
        {"matches": "(string, string): bool", "matches_string": "string.(string): bool"},
    ),
    declare(
        "hash",
        "A whole number from 0 to 2^63 - 1, pseudo-random but always the same for a string: mixed FNV-1a.",
        "(string): int",
    ),
    declare(
        "charAt",
        "The character at an offset; empty at the end of the string, an error beyond it.",
        "string.(int): string",
    ),
    declare("lowerAscii", "ASCII letters in lower case.", "string.(): string"),
    declare("upperAscii", "ASCII letters in upper case.", "string.(): string"),
    declare(
        "replace",
        "Every occurrence of a substring replaced, or the first n of them.",
        {
            "string_replace_string_string": "string.(string, string): string",
            "string_replace_string_string_int": "string.(string, string, int): string",
        },
    ),
    declare(
        "split",
        "The parts between the separators, at most n of them.",
        {
            "string_split_string": "string.(string): list(string)",
            "string_split_string_int": "string.(string, int): list(string)",
        },
    ),
    declare(
        "substring",
        "The part from an offset to the end, or to before another offset; out of range is an error.",
        "string.(int): string",
        "string.(int, int): string",
    ),
    declare("trim", "The string without white space at both ends.", "string.(): string"),
    declare(
        "reverse",
        "The characters or items in reverse order.",
        {"string_reverse": "string.(): string", "list_reverse": "list(T).(): list(T)"},
    ),
    declare(
        "format",
        "The string with each of %s %d %f %e %b %o %x %X replaced by an item of the list.",
        "string.(list(T)): string",
    ),
    declare("strings.quote", "The string in double quotes, special characters escaped.", "(string): string"),
    declare(
        "find", "The first part that matches the RE2 pattern, empty if none does.", "string.(string): string"
    ),
    declare(
        "findAll",
        "All parts that match the RE2 pattern, or the first n of them.",
        "string.(string): list(string)",
        "string.(string, int): list(string)",
    ),
)
