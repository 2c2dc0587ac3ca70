"""Separates intended differences from others, and names those of the list that occurred."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.conformance.scheduler.compare import Compared
from tests.conformance.scheduler.differences import LISTED, REWORDINGS


@dataclass(slots=True)
class Verdict:
    """The differences of the list that occurred in one run."""

    used: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By difference and scenario."""

    def judge(self, scenario: str, compared: Compared) -> list[str]:
        """Return the differences that are not listed, and those that are and did not occur."""
        for name in compared.reworded:
            self.used[name, scenario] += 1
        left = []
        for finding in compared.findings:
            text = str(finding)
            listed = next((each for each in LISTED if each.matches(scenario, text)), None)
            if listed is None:
                left.append(text)
            else:
                self.used[listed.name, scenario] += 1
        return left + [
            f"listed and not seen: {each.name}"
            for each in LISTED
            if scenario in each.scenarios and not each.may and not self.used[each.name, scenario]
        ]

    def unneeded(self) -> list[str]:
        """Return the general differences that no scenario has: meant for a run of all scenarios."""
        seen = {name for name, _ in self.used}
        return [f"{each.name} is listed and was not seen" for each in REWORDINGS if each.name not in seen]

    def print_listed(self) -> None:
        """Print each listed difference that was seen, with its reason and scenarios."""
        print("\nlisted differences seen:")
        for each in (*REWORDINGS, *LISTED):
            where = sorted(scenario for name, scenario in self.used if name == each.name)
            if where:
                shown = ", ".join(where[:6]) + (f" and {len(where) - 6} more" if len(where) > 6 else "")
                print(f"  {each.name}: {each.reason} ({shown})")
