"""Measures what each layer of the engine gives: `python -m tests.bench.layers`.

For each layer and shape, decisions with and without the layer alternate, each in a process of its own. Prints how
much longer a decision takes without the layer, by the best of each: at 1.0 the layer gives nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import kdsl.eval.scalar.compiler as scalar_compiler
import kdsl.plan.counts.tally as counts_tally
import kdsl.plan.memo.skips as skips
from kdsl.cluster.objects.selector_index import SelectorIndex
from kdsl.cycle import search
from kdsl.cycle.filtering import find_feasible
from kdsl.eval.scalar import aggregate
from kdsl.plan.columns import batch, tape
from kdsl.plan.columns.node_groups import NodeGroups
from kdsl.plan.columns.tape import Tapes
from kdsl.plan.memo import answers, kept_rules
from kdsl.plan.memo.signature_memo import MAX_RULE_BYTES, SignatureMemo
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.score import ScorePlugin

from tests.bench import decisions

SHAPES: Final = ("basic", "mixed", "job-labels", "unlike-nodes", "unlike-pods", "unlike")


def _without_memo(of_rules: bool) -> Callable[[], None]:
    def patch() -> None:
        find = SignatureMemo.of

        def of(self: Any, pod: Any, nodes: Any, make: Any) -> Any:
            is_of_rule = self._memo._most == MAX_RULE_BYTES
            if is_of_rule is of_rules:
                return make(pod, nodes, self._epochs[nodes.snapshot.live.shared_state], True)
            return find(self, pod, nodes, make)

        SignatureMemo.of = of  # type: ignore[method-assign]

    return patch


def _without_node_classes() -> None:
    kept_rules.reads_node_class_only = lambda rule: False  # type: ignore[attr-defined]


def _without_prefetching() -> None:
    def without(make: Any, most: int | None) -> Any:
        # `most` leaves out a positional `prefetches`.
        return lambda self, *args, **named: make(self, *args[:most], **{**named, "prefetches": False})

    for kind, most in ((answers.ByNodeClass, 3), (answers.ByRow, None)):
        kind.__init__ = without(kind.__init__, most)  # type: ignore[method-assign]


def _without_columns() -> None:
    for module in (batch, answers, tape):
        module.MIN_ROWS = 1 << 30  # type: ignore[attr-defined]
    batch.is_worth_columns.__defaults__ = (1 << 30,)


def _without_kept_frames() -> None:
    for kind in (PredicateRule, ScorePlugin):
        kind.keep_frames = lambda *_: None  # type: ignore[method-assign, assignment]


def _without_known_share() -> None:
    search.find_feasible = lambda *args: find_feasible(*args[:5])  # type: ignore[attr-defined]


def _set(target: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(target, name, value)


LAYERS: Final[dict[str, Callable[[], None]]] = {
    "answers by signature of a profile": _without_memo(of_rules=False),
    "answers by signature of a rule": _without_memo(of_rules=True),
    "node classes": _without_node_classes,
    "known skips": _set(skips.Skips, "__call__", lambda *_: skips.Skipping()),
    "kept frames": _without_kept_frames,
    "prefetching": _without_prefetching,
    "first run by the share of nodes that pass": _without_known_share,
    "columns": _without_columns,
    "tapes": _set(Tapes, "play", lambda *_: None),
    "groups of nodes": _set(NodeGroups, "groups", lambda *_: None),
    "first counts of a selector": _set(counts_tally, "counts_of_selected", lambda *_: None),
    "terms by label": _set(SelectorIndex, "matching", lambda self, labels, scopes=(): list(self._required)),
    "selectors that decide counts": _set(aggregate, "selector_of", lambda *_: None),
    "answers of counts by pod": _set(aggregate, "pod_key_of", lambda *_: None),
    "direct forms of calls": _set(scalar_compiler, "fast_call", lambda *_: None),
}
"""Switches a layer off, by its name."""


def _measured(shape: str, layer: str, pods: int) -> float:
    command = [
        sys.executable,
        "-m",
        "tests.bench.layers",
        "--here",
        layer,
        "--shape",
        shape,
        "--pods",
        str(pods),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path.cwd())
    return float(json.loads(done.stdout)["pods_per_second"])


@click.command()
@click.option("--shape", "shapes", multiple=True, default=SHAPES, show_default=True)
@click.option("--layer", "layers", multiple=True, type=click.Choice([*LAYERS]), default=[*LAYERS])
@click.option("--pods", default=1_000, show_default=True)
@click.option("--turns", default=2, show_default=True)
@click.option("--here", help="Measure in this process without a layer, or with all for an empty name.")
def main(shapes: tuple[str, ...], layers: tuple[str, ...], pods: int, turns: int, here: str | None) -> None:
    """Measure what each layer gives."""
    if here is not None:
        if here:
            LAYERS[here]()
        print(json.dumps(decisions.measure(shapes[0], 5_000, pods, 1_000)))
        return
    print("| layer |", " | ".join(shapes), "|")
    print("|---|" + "---|" * len(shapes))
    for layer in layers:
        ratios = []
        for shape in shapes:
            rates = [(_measured(shape, "", pods), _measured(shape, layer, pods)) for _ in range(turns)]
            whole, without = map(max, zip(*rates, strict=True))
            ratios.append(f"{whole / without:.2f}")
        print(f"| {layer} |", " | ".join(ratios), "|", flush=True)


if __name__ == "__main__":
    main()
