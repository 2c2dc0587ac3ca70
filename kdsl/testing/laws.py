"""Reads the laws of properties: statements about all pods and clusters."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from kdsl.app import find_profile
from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.errors import InvalidInputError
from kdsl.testing.cases import Law, LawKind
from kdsl.testing.codes import TestCode
from kdsl.testing.document import PlacedValue
from kdsl.testing.subject import Checked

_COMPARISON: Final = re.compile(r"feasible\(\s*([\w.]+)\s*\)\s+(\w+)\s+feasible\(\s*([\w.]+)\s*\)")
_FORMS: Final = (
    "feasible(A) subsetOf feasible(B)",
    "feasible(A) equals feasible(B)",
    "deterministic",
    "order independent",
)


def read_law(place: PlacedValue, checked: Checked | None, found: list[Diagnostic]) -> Law | None:
    """Read the `holds` of a property about the profile under test; without one only its form is checked."""
    text = " ".join(place.text.split())
    if text in (LawKind.DETERMINISTIC, LawKind.ORDER_INDEPENDENT):
        return Law(LawKind(text), (checked.profile if checked is not None else "",))
    match = _COMPARISON.fullmatch(text)
    if match is None or match[2] not in (LawKind.SUBSET, LawKind.EQUAL):
        help_ = (*did_you_mean(text, _FORMS[2:]), f"laws: {'; '.join(_FORMS)}")
        found.append(Diagnostic(TestCode.BAD_LAW, f"`{text}` is no law", place.span, "unknown", help=help_))
        return None
    if checked is None or checked.rules is None:
        return None
    names: list[str] = []
    for name in (match[1], match[3]):
        try:
            names.append(find_profile(checked.rules, name).qualified)
        except InvalidInputError as error:
            found.extend(
                replace(each, code=TestCode.UNKNOWN_RULE, span=place.span, label="unknown", where="")
                for each in error.diagnostics
            )
    return Law(LawKind(match[2]), tuple(names)) if len(names) == 2 else None
