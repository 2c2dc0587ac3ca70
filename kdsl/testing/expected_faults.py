"""Errors during a case: each is a mismatch, unless the case expects it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdsl.hooks.faults import Fault
from kdsl.report.faults import traceback_lines
from kdsl.testing.document import PlacedValue
from kdsl.testing.mismatch import Mismatch, differs


def unexpected_faults(
    faults: Sequence[Fault], expect: PlacedValue, recorded: Sequence[str] = ()
) -> Iterator[Mismatch]:
    """Yield the errors that are not expected.

    A case expects an error by naming the rule or plugin under `faults`, where it has to name all of them, or
    by having its text in another field, such as the reason of a rejection. `recorded` errors occur again.
    """
    wanted = expect.get("faults")
    actual = tuple(map(str, faults))
    if wanted is not None:
        names = list(dict.fromkeys(fault.source for fault in faults))
        for each in differs("faults", wanted, names, actual, in_order=False):
            lines = [line for fault in faults for line in traceback_lines(fault)]
            yield Mismatch(each.field, each.expected, each.actual, each.span, each.trace, tuple(lines))
        return
    texts = tuple(_texts(expect))
    for fault in faults:
        if fault.source not in recorded and not any(fault.message in text for text in texts):
            text = str(fault)
            yield Mismatch(
                "faults", "nothing goes wrong", text, expect.span, (), tuple(traceback_lines(fault))
            )


def _texts(place: PlacedValue) -> Iterator[str]:
    if isinstance(place.value, str):
        yield place.value
    for child in place.each():
        yield from _texts(child)
