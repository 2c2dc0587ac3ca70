"""The reason why a pod fits on no node: the diagnosis, and kube-scheduler's text for it, byte for byte.

Used for the decision's message, the pod's condition and the FailedScheduling event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kdsl.base.reasons import MAX_RECORD, MAX_RECORDED, MAX_TOGETHER, more, room
from kdsl.cycle.decision import Rejection
from kdsl.cycle.visited import VisitedNodes
from kdsl.hooks.status import Code, Status

UNKNOWN = Status(Code.UNRESOLVABLE)
"""The status of a node that no filter judged."""

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The statuses of all `nodes` nodes of the snapshot.

    `absent` is the status of the nodes without a verdict of their own. A PreFilter rejection sets
    `prefilter_message` and hides the reasons of the nodes.
    """

    nodes: int
    verdicts: VisitedNodes
    absent: Status = UNKNOWN
    prefilter_message: str = ""
    postfilter_message: str = ""

    def counted(self) -> list[tuple[Status, int]]:
        """Return each rejection with its number of nodes; `absent` counts for the nodes that were not
        visited.
        """
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
                text += f" {', '.join(_readable(reasons))}."
        if self.postfilter_message:
            text += f" {self.postfilter_message}"
        return text


def single_node_message(status: Status) -> str:
    """Return the FitError text of a pod that a plugin rejected on the one node chosen for it."""
    reasons = sorted(f"{count} {reason}" for reason, count in Counter(status.reasons).items())
    return "0/1 nodes are available:" + (f" {', '.join(reasons)}." if reasons else "")


def rejections(counted: list[tuple[Status, int]]) -> tuple[Rejection, ...]:
    """Return one record for each plugin, code, reason and rule line, the most frequent first."""
    totals: dict[tuple[str, str, str, str, bool], int] = {}
    for status, count in counted:
        for part in status.parts or (status,):
            for at, reason in enumerate(part.reasons or ("",)):
                site = part.sites[at] if at < len(part.sites) else ""
                key = part.plugin, part.code.label, reason, site, part.is_error_in(reason)
                totals[key] = totals.get(key, 0) + count
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    kept = room([key[2] for key, _ in ordered], MAX_RECORDED, MAX_RECORD)
    listed = [Rejection(*key[:4], count, key[4]) for key, count in ordered[:kept]]
    return (*listed, *_left_out(ordered[kept:]))


def _left_out(others: Iterable[tuple[tuple[str, str, str, str, bool], int]]) -> Iterator[Rejection]:
    """Yield one summary record for each plugin and code of the records that are left out."""
    found: dict[tuple[str, str, bool], list[int]] = {}
    for (plugin, code, _, _, is_error), count in others:
        found.setdefault((plugin, code, is_error), []).append(count)
    for (plugin, code, is_error), counts in sorted(found.items()):
        yield Rejection(plugin, code, more(len(counts)), "", sum(counts), is_error)


def _readable(reasons: list[str]) -> list[str]:
    """Return the reasons of a message, shortened to a readable number."""
    kept = room(reasons, len(reasons), MAX_TOGETHER)
    return reasons if kept == len(reasons) else [*reasons[:kept], more(len(reasons) - kept)]
