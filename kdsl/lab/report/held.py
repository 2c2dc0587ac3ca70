"""The cards of nodes at the end of a run, and how much of each is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kdsl.lab.stored import Results, refused
from kdsl.lab.traces import CARD

MOST_CARDS: Final = 1024
"""The cards of a node: no trace has more."""


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

    A pod's share of its cards is the rise of the used parts at its binding. Raises InvalidInputError if
    decisions and nodes do not fit together.
    """
    table = results.nodes(run)
    if table is None or "used" not in decisions.column_names:
        return ()
    nodes = {row["node"]: row for row in table.to_pylist()}
    used = _used_parts(results, run, nodes, decisions)
    by_model: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for name, parts in used.items():
        if parts:
            by_model[nodes[name]["model"] or "no model"].append(tuple(parts))
    found = [
        ModelCards(model, tuple(sorted(each, key=_fullness, reverse=True)))
        for model, each in by_model.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.cards, each.model)))


def _used_parts(
    results: Results, run: str, nodes: Mapping[str, Mapping[str, Any]], decisions: Any
) -> dict[str, list[int]]:
    """Return the used parts of each card of each node."""
    prepare = results.inputs(run).get("prepare")
    is_ranked = isinstance(prepare, dict) and bool(prepare.get("shuffle"))
    parts: dict[str, list[int]] = {}
    for name, row in nodes.items():
        if not isinstance(row["cards"], int) or not 0 <= row["cards"] <= MOST_CARDS:
            raise refused(results.path, f"node `{name}` of run `{run[:12]}` has {row['cards']} cards")
        parts[name] = [0] * row["cards"]
    before = 0
    columns = (decisions.column(name).to_pylist() for name in ("node", "cards", "used"))
    for node, cards, used in zip(*columns, strict=True):
        if not isinstance(used, int):
            raise refused(results.path, f"run `{run[:12]}` does not say how much is used after each pod")
        rose, before = used - before, used
        if node is None or not cards:
            continue
        name = node.partition("-")[2] if is_ranked else node
        for card in cards:
            if name not in parts or not isinstance(card, int) or not 0 <= card < len(parts[name]):
                title = f"run `{run[:12]}` uses card {card} of `{node}`, which its trace has not"
                raise refused(results.path, title)
            parts[name][card] += rose // len(cards)
    return parts


def _fullness(parts: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
    return sum(parts) / len(parts), parts
