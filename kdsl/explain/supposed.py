"""Reads the changes of `--what-if` for one cluster, and reports all errors in them, and those that change
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.read.codes import InputCode
from kdsl.explain.changes import PODS, ChangeError, WhatIfChange, parse_change


def parse_changes(
    texts: Iterable[str], nodes: Collection[str], placed: Collection[str]
) -> tuple[WhatIfChange, ...]:
    """Read changes to a cluster with these nodes and these placed pods (`namespace/name`).

    Raises InvalidInputError with all errors.
    """
    found: list[WhatIfChange] = []
    problems: list[Diagnostic] = []
    for text in texts:
        try:
            change = parse_change(text, nodes)
            if change.on == PODS and change.value not in placed:
                raise ChangeError(f"no pod `{change.value}` is placed", *did_you_mean(change.value, placed))
            found.append(change)
        except ChangeError as error:
            title = f"`{text}` is no change: {error.reason}"
            problems.append(Diagnostic(InputCode.VALUE, title, where="--what-if", help=error.help))
    if problems:
        raise InvalidInputError(problems)
    return tuple(found)


def without_effect(change: WhatIfChange) -> Diagnostic:
    """Return the warning about a change that leaves everything as it is."""
    title = f"`{change.text}` changes nothing: the input is so already"
    return Diagnostic(InputCode.VALUE, title, where="--what-if", severity=Severity.WARNING)
