"""Semantic versions: the functions Kubernetes adds to CEL. Operators are in `operators`."""

from __future__ import annotations

from kdsl.check.library.declaration import Function, declare

FUNCTIONS: tuple[Function, ...] = (
    declare(
        "semver",
        'A semantic version from its text; with true, "v1.2" and "01.2.3" are read too.',
        {"string_to_semver": "(string): semver", "string_bool_to_semver": "(string, bool): semver"},
    ),
    declare("isSemver", "Would `semver` succeed?", "(string): bool", "(string, bool): bool"),
    declare("major", "The major version.", "semver.(): int"),
    declare("minor", "The minor version.", "semver.(): int"),
    declare("patch", "The patch version.", "semver.(): int"),
)
