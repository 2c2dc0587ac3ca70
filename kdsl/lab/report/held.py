"""The cards of nodes at the end of a run, and how much of each is used."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdsl.lab.stored import Results, refused
from kdsl.lab.traces import CARD


@dataclass(frozen=True, slots=True)
class ModelCards:
    """The nodes with cards of a model; each is the parts in use of its cards. Fuller nodes come first."""

    model: str
    nodes: tuple[tuple[int, ...], ...]

    @property
    def cards(self) -> int:
        return sum(map(len, self.nodes))

    @property
    def used(self) -> float:
        """The used share of the cards."""
        return sum(map(sum, self.nodes)) / (self.cards * CARD)


def cards_held(results: Results, run: str, decisions: Any) -> tuple[ModelCards, ...]:
    """Return the cards at the end of a run, the most frequent model first; () if the folder lacks the nodes.

    A pod's share of its cards is what the used parts rose by with it. Raises InvalidInputError if decisions
    and nodes do not fit together.
    """
    table = results.nodes(run)
    if table is None or "used" not in decisions.column_names:
        return ()
    prepare = results.inputs(run).get("prepare")
    is_ranked = isinstance(prepare, dict) and bool(prepare.get("shuffle"))
    nodes = {row["node"]: row for row in table.to_pylist()}
    free = {name: [0] * row["cards"] for name, row in nodes.items()}
    before = 0
    columns = (decisions.column(name).to_pylist() for name in ("node", "cards", "used"))
    for node, cards, used in zip(*columns, strict=True):
        rose, before = used - before, used
        if node is None or not cards:
            continue
        name = node.partition("-")[2] if is_ranked else node
        for card in cards:
            if name not in free or not 0 <= card < len(free[name]):
                title = f"run `{run[:12]}` uses card {card} of `{node}`, which its trace has not"
                raise refused(Path(results.path), title)
            free[name][card] += rose // len(cards)
    by_model: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for name, parts in free.items():
        if parts:
            by_model[nodes[name]["model"] or "no model"].append(tuple(parts))
    found = [
        ModelCards(
            model, tuple(sorted(each, key=lambda parts: (sum(parts) / len(parts), parts), reverse=True))
        )
        for model, each in by_model.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.cards, each.model)))


def _fullness(parts: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
    return sum(parts) / len(parts), parts
