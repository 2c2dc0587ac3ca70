"""The figures of runs: their names in results, their titles and units, and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run. `unit` follows its values; `digits` are those after the decimal point."""

    key: str
    title: str
    unit: str
    about: str
    digits: int = 2
    is_more_better: bool = False

    @property
    def digits_of_one(self) -> int:
        """The digits of the figure of one run: a number of pods is whole."""
        return 0 if self.unit == "pods" else self.digits

    @property
    def sentence(self) -> str:
        return f"{self.about[0].upper()}{self.about[1:]}."

    @property
    def inline(self) -> str:
        """The title within a sentence."""
        return self.title if self.title[1:2].isupper() else f"{self.title[0].lower()}{self.title[1:]}"

    @property
    def axis(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title


OF_LOADS: Final = (
    Metric("allocation", "Allocation", "%", "used share of all cards", is_more_better=True),
    Metric("lost_of_all", "Fragmentation", "%", "free and useless to typical pods, as a share of all cards"),
    Metric("lost_of_idle", "Fragmentation of free cards", "%", "the same as a share of what is free"),
    Metric("pending", "Pending", "pods", "pods without a node at the end of the run", 1),
)
"""Of runs that place one pod after the other: at a load, but for pending."""

OVER_TIME: Final = (
    Metric("cost", "Cost", "", "price of all nodes over the run"),
    Metric("waiting_p99", "Waiting, p99", "s", "99 of 100 pods start within this time", 1),
    Metric("waiting_p90", "Waiting, p90", "s", "9 of 10 pods start within this time", 1),
    Metric("waiting_p50", "Waiting, median", "s", "half of the pods start within this time", 1),
    Metric("waiting_mean", "Waiting, mean", "s", "from arrival to start", 1),
    Metric("pending", "Pending", "pods", "pods that never started", 1),
    Metric(
        "allocation_mean", "Allocation", "%", "used share of all cards, mean over time", is_more_better=True
    ),
    Metric("fragmentation_mean", "Fragmentation", "%", "free and useless to typical pods, mean over time"),
    Metric("nodes_mean", "Nodes, mean", "", "mean over time", 1),
    Metric("nodes_max", "Nodes, most", "", "most nodes at a time", 1),
    Metric("evictions", "Evictions", "pods", "pods that were evicted", 1),
    Metric("end", "End", "s", "time of the last event", 0),
)
"""Of runs over time."""

SHOWN_FIRST: Final = {
    False: ("allocation", "lost_of_all", "pending"),
    True: ("cost", "waiting_p99", "pending", "allocation_mean"),
}
"""The figures with a plot of their own, for runs at loads and over time."""

PARETO: Final = {False: ("lost_of_all", "allocation"), True: ("cost", "waiting_p99")}
"""The two figures of the Pareto front where none are asked for."""
