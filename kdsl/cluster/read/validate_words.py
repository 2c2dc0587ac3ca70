"""The check of fields with a fixed set of words, and help for names and labels; part of `validate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kdsl.base.diagnostic import did_you_mean
from kdsl.base.paths import Path
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems

SHORT_NAME: Final = "write up to 63 lower case letters, digits and `-`, with a letter or digit at both ends"
LABEL_KEY: Final = "write `NAME` or `PREFIX/NAME`, such as `example.com/team`"
LABEL_VALUE: Final = "write up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
ONE_OF_THEM: Final = "write exactly one of them"


def check_known(word: str, known: Sequence[str], path: Path, problems: Problems, what: object = "") -> None:
    """Report a word that is not known; `what` names the field, by default the last step of the path."""
    if word not in known:
        help = did_you_mean(word, known) or (one_of(known),)
        problems.add(InputCode.VALUE, path, f"unknown {what or path[-1]} `{word}`", *help)


def one_of(known: Iterable[str]) -> str:
    """Return the help that lists the known words."""
    return f"known are {', '.join(f'`{word}`' for word in known)}"
