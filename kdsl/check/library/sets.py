"""CEL's set extension: lists compared as sets, by CEL's equality."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare("sets.contains", "Every item of the second list is in the first.", "(list(T), list(T)): bool"),
    declare("sets.equivalent", "Every item of each list is in the other.", "(list(T), list(T)): bool"),
    declare("sets.intersects", "Some item is in both lists.", "(list(T), list(T)): bool"),
)
