"""The facts in the files of single runs: why pods wait, cards at the end, decisions, measures over time.

A file that cannot be read leaves its run out, and is among the problems.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.lab.report.held import ModelCards, cards_held
from kdsl.lab.report.study import Study, StudyRun, shortened
from kdsl.lab.report.timelines import Timeline, measures_of, timelines
from kdsl.lab.stored import Results, rows_at

MOST_DECISIONS: Final = 10_000
"""The decisions that a page holds, of all runs together."""
MOST_OF_A_RUN: Final = 2_000
MOST_CARDS: Final = 24
"""The runs whose cards a page shows."""
LONGEST_REASON: Final = 120
_PART: Final = re.compile(r"([0-9]{1,9}) (.+)", re.DOTALL)
_REJECTED: Final = " nodes are available: "
_COLUMNS: Final = [
    "pod",
    "node",
    "cards",
    "reason",
    "used",
    "arrived_at",
    "started_at",
    "waiting",
    "evictions",
]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some decisions of a run: `places` are those in the order of arrival, `total` and `pending` count all
    pods.
    """

    total: int
    pending: int
    places: tuple[int, ...]
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts found in the files of runs.

    `reasons` counts the pods that wait by their main reason, for each run; `cards` and `excerpts` are of
    example runs, by trace and variant, and by run. `inputs` are the digests on which each run depends,
    `rules` the text of the rules of example runs.
    """

    reasons: Mapping[str, Counter[str]]
    excerpts: Mapping[str, Excerpt]
    cards: Mapping[tuple[int, int], tuple[ModelCards, ...]]
    timelines: tuple[Timeline, ...]
    inputs: Mapping[str, Mapping[str, Any]]
    rules: Mapping[str, str]
    problems: tuple[Diagnostic, ...]


def evidence_of(results: Results, study: Study, advance: Callable[[], object] = lambda: None) -> Evidence:
    """Read the files of all runs. `advance` is called after each."""
    groups = [
        (trace, variant) for trace in range(len(study.traces)) for variant in range(len(study.variants))
    ]
    examples = {run.digest: each for each in groups if (run := study.example(*each)) is not None}
    limit = min(MOST_OF_A_RUN, MOST_DECISIONS // max(len(examples), 1))
    reasons: dict[str, Counter[str]] = {}
    excerpts: dict[str, Excerpt] = {}
    cards: dict[tuple[int, int], tuple[ModelCards, ...]] = {}
    measures: dict[str, Mapping[str, Any]] = {}
    inputs: dict[str, Mapping[str, Any]] = {}
    rules: dict[str, str] = {}
    problems: list[Diagnostic] = []

    def read(run: StudyRun) -> None:
        is_example = run.digest in examples
        wanted = _COLUMNS if is_example else ["reason", "node", "arrived_at", "waiting"]
        table = results.decisions(run.digest, wanted)
        inputs[run.digest] = results.inputs(run.digest)
        reasons[run.digest] = _reasons(table)
        if is_example:
            excerpts[run.digest] = _excerpt(table, limit)
            text = results.rules(run.digest)
            if text is not None:
                rules[run.digest] = text
        if study.is_timed:
            measures[run.digest] = measures_of(results.series(run.digest), table)
        elif is_example and len(cards) < MOST_CARDS:
            held = cards_held(results, run.digest, table)
            if held:
                cards[examples[run.digest]] = held

    for run in study.runs:
        try:
            read(run)
        except InvalidInputError as error:
            problems += error.diagnostics
        advance()
    return Evidence(
        reasons, excerpts, cards, tuple(timelines(study, measures)), inputs, rules, tuple(problems)
    )


def _reasons(table: Any) -> Counter[str]:
    """Count the pods without a node by the main reason of each."""
    counts: Counter[str] = Counter()
    for each in table.column("reason").value_counts().to_pylist():
        if each["values"] is not None:
            counts[main_reason(str(each["values"]))] += each["counts"]
    return counts


@lru_cache(maxsize=65536)
def main_reason(message: str) -> str:
    """Return the reason that most nodes have in a message such as `0/9 nodes are available: 7 a, 2 b.`

    Of equally frequent ones the first; a message of another form stands for itself.
    """
    _, is_rejected, rest = message.partition(_REJECTED)
    found: list[tuple[int, str]] = []
    for part in rest.partition(". preemption:")[0].rstrip(".").split(", "):
        match = _PART.fullmatch(part)
        if match:
            found.append((int(match[1]), match[2]))
        elif found:  # a comma within a reason
            found[-1] = found[-1][0], f"{found[-1][1]}, {part}"
    if not is_rejected or not found:
        return shortened(message, LONGEST_REASON)
    return shortened(max(found, key=lambda each: each[0])[1], LONGEST_REASON)


def _excerpt(table: Any, limit: int) -> Excerpt:
    """Return at most so many decisions: the first pods with a node and, up to half, the first without one."""
    nodes = table.column("node").to_pylist()
    waiting = [at for at, node in enumerate(nodes) if node is None]
    placed = [at for at, node in enumerate(nodes) if node is not None]
    few = max(limit // 2, limit - len(placed))
    chosen = sorted(waiting[:few] + placed[: limit - min(few, len(waiting))])
    return Excerpt(len(nodes), len(waiting), tuple(chosen), tuple(rows_at(table, chosen).to_pylist()))
