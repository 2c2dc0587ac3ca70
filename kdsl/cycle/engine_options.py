"""The settings of an engine outside the profiles."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.cycle.decision import Detail, TieBreak


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings outside the profile. `percentage` is the percentage of nodes to find (0: adaptive) where the
    profile has none; `rules` is the digest of the rule set.

    `parallelism` changes the time of a decision, never its result. An engine that continues another one's
    work has that engine's `start` of the next search and number of `attempts`.
    """

    seed: int = 0
    tie_break: TieBreak = TieBreak.HEAP
    parallelism: int = 1
    percentage: int = 0
    detail: Detail = Detail.SUMMARY
    rules: str = ""
    start: int = 0
    attempts: int = 0
