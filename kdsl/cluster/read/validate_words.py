"""The check of fields with a fixed set of words; part of `validate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kdsl.base.diagnostic import did_you_mean
from kdsl.base.paths import Path
from kdsl.cluster.read.problems import InputCode, Problems


def check_known(word: str, known: Sequence[str], path: Path, problems: Problems, what: object = "") -> None:
    """Report a word that is not known; `what` names the field, by default the last step of the path."""
    if word not in known:
        help = did_you_mean(word, known) or (one_of(known),)
        problems.add(InputCode.VALUE, path, f"unknown {what or path[-1]} `{word}`", *help)


def one_of(known: Iterable[str]) -> str:
    """Return the help that lists the known words."""
    return f"known are {', '.join(f'`{word}`' for word in known)}"
