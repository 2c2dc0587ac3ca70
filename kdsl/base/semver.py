"""Semantic versions as semver.org 2.0.0 defines them: `1.2.3-beta.1+build.7`. Expressions compare them.

Grammar, order and the tolerant form are those of Kubernetes' CEL library (`semver`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_UINT64_MAX: Final = 2**64 - 1
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_WORDS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SEMVER: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_WORDS}))?(?:\+{_WORDS})?")
_LEADING_ZEROS: Final = re.compile(r"0+(?=[0-9])")
_MAX_LENGTH: Final = 1024

_Identifier = tuple[int, int, str]
_RELEASE: Final[tuple[_Identifier, ...]] = ((2, 0, ""),)


@dataclass(frozen=True, slots=True, order=True)
class Semver:
    """A version. Order and equality follow precedence: the text after `+` does not count.

    `precedence` orders versions with the same three numbers: numeric identifiers by value come before words,
    words before the release itself.
    """

    major: int
    minor: int
    patch: int
    precedence: tuple[_Identifier, ...] = _RELEASE
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text


def parse_semver(text: str, tolerant: bool = False) -> Semver:
    """Read a version; raises ValueError with a text for the user where `text` is not one.

    `tolerant` reads `v1.2.3`, `1.2`, `1` and `01.02.03` as well; it never reads white space.
    """
    match = _SEMVER.fullmatch(_completed(text) if tolerant else text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        raise ValueError(f"`{text[:40]}` is not a semantic version: write it as in `1.2.3` or `1.2.3-beta.1`")
    major, minor, patch = map(int, match.group(1, 2, 3))
    identifiers = [_identifier(word, text) for word in match[4].split(".")] if match[4] else _RELEASE
    numbers = (major, minor, patch, *(number for _, number, _ in identifiers))
    if max(numbers) > _UINT64_MAX:
        raise ValueError(f"`{text[:40]}` is not a semantic version: a number in it is beyond 2^64 - 1")
    return Semver(major, minor, patch, tuple(identifiers), match[0])


def _identifier(word: str, text: str) -> _Identifier:
    if not word.isdigit():
        return (1, 0, word)
    if word[0] == "0" and word != "0":
        raise ValueError(f"`{text[:40]}` is not a semantic version: `{word}` in it has a leading zero")
    return (0, int(word), "")


def _completed(text: str) -> str:
    """Return the strict form of a tolerant text; the text behind the third number stays as it is."""
    parts = [_LEADING_ZEROS.sub("", part, count=1) if part[:1] == "0" else part for part in _parts(text)]
    if len(parts) < 3 and not parts[-1].isdigit():
        return text
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _parts(text: str) -> list[str]:
    return text.removeprefix("v").split(".", 2)
