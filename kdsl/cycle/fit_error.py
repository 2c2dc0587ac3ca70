"""Why a pod fits on no node: the diagnosis, and kube-scheduler's text for it, byte for byte.

Used for the decision's message, the pod's condition and the FailedScheduling event.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kdsl.cycle.decision import Rejection
from kdsl.cycle.verdicts import Verdicts
from kdsl.hooks.status import Code, Status

UNKNOWN = Status(Code.UNRESOLVABLE)
"""What a node is answered that nobody asked about."""

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What every node of the snapshot (`nodes` of them) was answered.

    `absent` stands for the nodes without a verdict of their own. A PreFilter rejection sets
    `prefilter_message` and hides the reasons of the nodes.
    """

    nodes: int
    verdicts: Verdicts
    absent: Status = UNKNOWN
    prefilter_message: str = ""
    postfilter_message: str = ""

    def counted(self) -> list[tuple[Status, int]]:
        """Return each rejection with its number of nodes; `absent` counts for those not visited."""
        found = self.verdicts.counted()
        without = self.nodes - sum(count for _, count in found)
        return [*found, (self.absent, without)] if without > 0 else found

    def message(self) -> str:
        """Return the FitError text."""
        text = f"0/{self.nodes} nodes are available:"
        if self.prefilter_message:
            text += f" {self.prefilter_message}."
        else:
            histogram: Counter[str] = Counter()
            for status, count in self.counted():
                for reason in status.reasons:
                    histogram[reason] += count
            # Rendered first and sorted as strings, as the reference does: "10 x" comes before "2 y".
            reasons = sorted(f"{count} {reason}" for reason, count in histogram.items())
            if reasons:
                text += f" {', '.join(reasons)}."
        if self.postfilter_message:
            text += f" {self.postfilter_message}"
        return text


def single_node_message(status: Status) -> str:
    """Return the FitError text of a pod that was turned away from the one node chosen for it."""
    reasons = sorted(f"{count} {reason}" for reason, count in Counter(status.reasons).items())
    return "0/1 nodes are available:" + (f" {', '.join(reasons)}." if reasons else "")


def rejections(counted: list[tuple[Status, int]]) -> tuple[Rejection, ...]:
    """Return one record for each plugin, code, reason and rule line, the most frequent first."""
    totals: dict[tuple[str, str, str, str], int] = {}
    for status, count in counted:
        for part in status.parts or (status,):
            for at, reason in enumerate(part.reasons or ("",)):
                site = part.sites[at] if at < len(part.sites) else ""
                key = part.plugin, part.code.label, reason, site
                totals[key] = totals.get(key, 0) + count
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return tuple([Rejection(*key, count) for key, count in ordered])
