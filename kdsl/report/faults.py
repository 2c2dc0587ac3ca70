"""Errors of rules and plugins as text: in one decision, and in a run of many."""

from __future__ import annotations

import linecache
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.cycle.decision import Decision
from kdsl.hooks.faults import Fault, ToldApart
from kdsl.report.tables import plural, table

HINT: Final = "`--traceback` shows where the code of a plugin raised"


@dataclass(frozen=True, slots=True)
class GoneWrong:
    """The first occurrence of a fault, with the most nodes of one attempt, and its number of `attempts`."""

    fault: Fault
    attempts: int = 1

    def again(self, other: Fault) -> GoneWrong:
        """Count another attempt."""
        larger = other if other.nodes > self.fault.nodes else self.fault
        return GoneWrong(self.fault.on(larger.first, larger.nodes), self.attempts + 1)


class FaultTally:
    """Counts the faults of a run, decision by decision: those with different messages at one place apart."""

    def __init__(self) -> None:
        self._told_apart = ToldApart()
        self._found: dict[tuple[tuple[str, str], str], GoneWrong] = {}

    def observe(self, decision: Decision) -> None:
        """Count the faults of one decision."""
        for fault in map(self._told_apart, decision.faults):
            key = fault.key, fault.message
            known = self._found.get(key)
            self._found[key] = GoneWrong(fault) if known is None else known.again(fault)

    def found(self) -> tuple[GoneWrong, ...]:
        """Return the faults, the most frequent first."""
        return tuple(sorted(self._found.values(), key=lambda each: -each.attempts))


def who(found: Sequence[GoneWrong]) -> str:
    """Return the number of failed rules and plugins: `1 rule`, `2 rules and 1 plugin`."""
    rules = {each.fault.source for each in found if each.fault.site}
    plugins = {each.fault.source for each in found if not each.fault.site} - rules
    counts = [plural(len(each), noun) for each, noun in ((rules, "rule"), (plugins, "plugin")) if each]
    return " and ".join(counts)


def fault_lines(found: Sequence[GoneWrong], traceback: bool = False) -> list[str]:
    """Return a table of faults in a run; with `traceback` also Python tracebacks of plugins."""
    if not found:
        return []
    rows = [
        [
            each.fault.source or "-",
            f"{each.attempts:,}",
            each.fault.where if each.fault.nodes else "-",
            each.fault.message,
            each.fault.site,
        ]
        for each in found
    ]
    lines = table(["WENT WRONG", "ATTEMPTS", "NODES", "ERROR", "AT"], rows, right={1})
    if not traceback:
        raised = any(each.fault.code for each in found)
        return [*lines, *([HINT] if raised else ())]
    return [*lines, *(line for each in found for line in traceback_lines(each.fault))]


def decision_lines(faults: Collection[Fault], message: str, traceback: bool = False) -> list[str]:
    """Return a line for each fault of a decision that its `message` does not contain."""
    lines: list[str] = []
    for fault in faults:
        if fault.site or fault.message != message:
            lines.append(f"went wrong: {fault}")
        lines += traceback_lines(fault) if traceback else ()
    raised = not traceback and any(fault.code for fault in faults)
    return [*lines, *([HINT] if raised else ())]


def traceback_lines(fault: Fault) -> list[str]:
    """Return the Python traceback of a plugin's fault; empty without one."""
    if not fault.code:
        return []
    lines = [f"Traceback of {fault.source} (most recent call last):"]
    for file, number, function in fault.code:
        lines.append(f'  File "{file}", line {number}, in {function}')
        source = _line_of(file, number)
        lines += [f"    {source}"] if source else []
    return [*lines, fault.message]


def _line_of(file: str, number: int) -> str:
    try:
        return linecache.getline(file, number).strip()
    except ValueError:
        # A plugin's code may name any file: this name contains a null byte.
        return ""
