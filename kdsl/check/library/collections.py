"""Lists, maps and optionals: sizes, aggregates, search, and the functions of `optional` beside its macros."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

_ORDERED = ("int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration", "quantity", "semver")
_NAMES = ("int", "uint", "bool", "string", "bytes")
_SUMMED = ("int", "uint", "double", "duration", "quantity", "resources")

FUNCTIONS: tuple[Function, ...] = (
    declare(
        "size",
        "The number of characters, bytes, items, entries, or named resources.",
        {
            "size_string": "(string): int",
            "string_size": "string.(): int",
            "size_bytes": "(bytes): int",
            "bytes_size": "bytes.(): int",
            "size_list": "(list(T)): int",
            "list_size": "list(T).(): int",
            "size_map": "(map(K, V)): int",
            "map_size": "map(K, V).(): int",
            "size_resources": "(resources): int",
            "resources_size": "resources.(): int",
        },
    ),
    declare(
        "sum",
        "The sum of the items, zero for an empty list.",
        {f"list_sum_{kind}": f"list({kind}).(): {kind}" for kind in _SUMMED},
    ),
    declare(
        "min",
        "The smallest item; an empty list is an error.",
        {f"list_min_{kind}": f"list({kind}).(): {kind}" for kind in _ORDERED},
    ),
    declare(
        "max",
        "The largest item; an empty list is an error.",
        {f"list_max_{kind}": f"list({kind}).(): {kind}" for kind in _ORDERED},
    ),
    declare(
        "isSorted",
        "No item is larger than the next.",
        {f"list_is_sorted_{kind}": f"list({kind}).(): bool" for kind in _ORDERED},
    ),
    declare(
        "distinct",
        "The items without duplicates, each at its first position.",
        {f"list_distinct_{kind}": f"list({kind}).(): list({kind})" for kind in _NAMES},
    ),
    declare(
        "sort",
        "The items from the smallest to the largest.",
        {f"list_sort_{kind}": f"list({kind}).(): list({kind})" for kind in _ORDERED},
    ),
    declare(
        "@sortBy",
        "`x.sortBy(item, key)`, given the keys: the items from the smallest key to the largest.",
        {f"list_sort_by_{kind}": f"(list(T), list({kind})): list(T)" for kind in _ORDERED},
    ),
    declare(
        "slice",
        "The items from the first index up to but not including the second.",
        {"list_slice": "list(T).(int, int): list(T)"},
    ),
    declare("first", "The first item; none of an empty list.", "list(T).(): optional(T)"),
    declare("last", "The last item; none of an empty list.", "list(T).(): optional(T)"),
    declare(
        "flatten",
        "The items of nested lists, in order; a number sets how many levels are removed.",
        {"list_flatten": "list(list(T)).(): list(T)", "list_flatten_int": "list(T).(int): list(dyn)"},
    ),
    declare(
        "indexOf",
        "The first index of an item or of a substring, -1 if there is none; in strings from an offset on.",
        {
            "list_index_of": "list(T).(T): int",
            "string_index_of_string": "string.(string): int",
            "string_index_of_string_int": "string.(string, int): int",
        },
    ),
    declare(
        "lastIndexOf",
        "The last index of an item or of a substring, -1 if there is none; in strings up to an offset.",
        {
            "list_last_index_of": "list(T).(T): int",
            "string_last_index_of_string": "string.(string): int",
            "string_last_index_of_string_int": "string.(string, int): int",
        },
    ),
    declare(
        "lists.range",
        "The whole numbers from 0 up to but not including this one; at most 10,000 of them.",
        {"lists_range": "(int): list(int)"},
    ),
    declare(
        "join",
        "The strings of a list joined, with a separator between them.",
        "list(string).(): string",
        "list(string).(string): string",
    ),
    declare("optional.of", "An optional that holds the value.", {"optional_of": "(T): optional(T)"}),
    declare(
        "optional.ofNonZeroValue",
        "An optional that holds the value unless it is null, false, zero or empty.",
        "(T): optional(T)",
    ),
    declare("optional.none", "An optional without a value.", {"optional_none": "(): optional(T)"}),
    declare("hasValue", "Does the optional hold a value?", "optional(T).(): bool"),
    declare(
        "value",
        "The value of the optional; an error if there is none.",
        {"optional_value": "optional(T).(): T"},
    ),
    declare("or", "The first of two optionals that holds a value.", "optional(T).(optional(T)): optional(T)"),
    declare(
        "orValue",
        "The value of the optional, or the default.",
        {"optional_orValue_value": "optional(T).(T): T"},
    ),
)
