"""Runs the fragmentation experiment: `python -m tests.conformance.fragmentation FOLDER`.

FOLDER has `orders/TRACE_seedS_pods.csv.gz` and `_nodes.csv.gz` (the order of arrival, the ranked names of nodes),
`expected_per_seed.csv.gz` (allocation and fragmentation at some loads) and perhaps `decisions_POLICY.csv.gz` (every
decision on the default trace with seed 42). The traces are in `../../traces/openb` from there, or in `--traces`.

For each order the six policies of `rules/policies/atc23/` run. Compared are the orders that kdsl's own preparation
gives, decisions (node and card numbers), and figures: to the last digit, but those of Random, which draws otherwise,
within the spread of the seeds of the reference.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import click
import numpy as np
from kdsl.base.diagnostic import has_errors
from kdsl.cycle.decision import TieBreak
from kdsl.lab.orders import ordered
from kdsl.lab.rules import TYPICAL, rules_of
from kdsl.lab.running import Run, allocation, by_load, lost_of_all, lost_of_idle, run
from kdsl.lab.traces import Preparation, Trace, prepared, read_trace

from tests.conformance.tally import Tally

Row = Mapping[str, str]

PROFILES = {
    "Random": "random.random",
    "DotProd": "dot_prod.dot_prod",
    "GpuClustering": "gpu_clustering.gpu_clustering",
    "GpuPacking": "gpu_packing.gpu_packing",
    "BestFit": "best_fit.best_fit",
    "FGD": "fgd.fgd",
}
VALUES = {"FGD": {"Fragmentation.typical": TYPICAL, "Milli.typical": TYPICAL}}
FIGURES = {"alloc": (allocation, 2), "frag_ratio": (lost_of_idle, 3), "frag_amount": (lost_of_all, 2)}
"""What is compared by load: how it is measured, and its decimals."""
DECIDED = ("default", 42)
"""The trace and the seed of the recorded decisions."""
NODES = "openb_node_list_gpu_node.csv.gz"


@dataclass(frozen=True, slots=True)
class Order:
    """One order of arrival."""

    folder: Path
    traces: Path
    trace: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.trace} seed {self.seed}"

    def file(self, kind: str) -> Path:
        return self.folder / "orders" / f"{self.trace}_seed{self.seed}_{kind}.csv.gz"


def read_rows(path: Path) -> list[Row]:
    with gzip.open(path, "rt", newline="") as lines:
        return list(csv.DictReader(lines))


def orders_in(folder: Path, traces: Path) -> list[Order]:
    found = []
    for path in sorted((folder / "orders").glob("*_seed*_pods.csv.gz")):
        trace, _, rest = path.name.rpartition("_seed")
        found.append(Order(folder, traces, trace, int(rest.partition("_")[0])))
    return found


@cache
def _trace(traces: Path, name: str) -> Trace:
    trace, diagnostics = read_trace(traces / NODES, traces / f"openb_pod_list_{name}.csv.gz")
    assert not has_errors(diagnostics), diagnostics
    return trace


def _ordered(order: Order, trace: Trace) -> Trace:
    found, diagnostics = ordered(trace, order.file("pods"), order.file("nodes"))
    assert not diagnostics, diagnostics
    return found


def run_policy(order: Order, policy: str) -> Run:
    """Run a policy on the pods and nodes of an order."""
    trace = _ordered(order, _trace(order.traces, order.trace))
    checked = rules_of(f"policies.atc23.{PROFILES[policy]}", VALUES.get(policy, {}), trace.typical)
    tie_break = TieBreak.RANDOM if policy == "Random" else TieBreak.FIRST
    return run(checked.rules, checked.profile, trace, order.seed, tie_break)


Result = tuple[str, str, list[str]]
"""The family, the name and the differences of what was compared."""


def compare(order: Order, policies: Sequence[str]) -> list[Result]:
    """Compare what kdsl makes of an order."""
    found = [("orders", order.name, _order_differences(order))]
    expected = [row for row in expected_in(order.folder) if row["trace"] == order.trace]
    for policy in policies:
        name = f"{order.name} {policy}"
        mine = [row for row in expected if row["policy"] == policy]
        try:
            result = run_policy(order, policy)
        except Exception as cause:  # noqa: BLE001 - one policy that cannot run does not hide the others
            found.append((policy, name, [f"raised {type(cause).__name__}: {cause}"]))
            continue
        found += _figures(policy, name, order.seed, mine, result)
        decided = order.folder / f"decisions_{policy}.csv.gz"
        if (order.trace, order.seed) == DECIDED and decided.exists():
            found += _decisions(f"{policy} decisions", read_rows(decided), result)
    return found


@cache
def expected_in(folder: Path) -> list[Row]:
    return read_rows(folder / "expected_per_seed.csv.gz")


def _order_differences(order: Order) -> list[str]:
    """Compare an order with that of kdsl's own preparation."""
    trace = _trace(order.traces, order.trace)
    own, given = prepared(trace, order.seed, Preparation()), _ordered(order, trace)
    found = []
    for what, mine, theirs in (("pod", own.pods, given.pods), ("node", own.nodes, given.nodes)):
        if len(mine) != len(theirs):
            found.append(f"{what}s: expected {len(theirs)}, got {len(mine)}")
        place = next(
            (at for at, pair in enumerate(zip(theirs, mine, strict=False)) if pair[0] != pair[1]), None
        )
        if place is not None:
            found.append(f"{what} {place}: expected {theirs[place].name}, got {mine[place].name}")
    return found


def _figures(policy: str, name: str, seed: int, expected: Sequence[Row], result: Run) -> Iterator[Result]:
    """Compare the figures of one run, one by one; those of a seed, or of Random those of all seeds."""
    mine = [row for row in expected if row["seed"] == str(seed)]
    if not expected or (policy != "Random" and not mine):
        yield policy, name, ["the folder does not say what to expect"]
        return
    for kind, (measure, decimals) in FIGURES.items():
        columns = [column for column in expected[0] if column.removeprefix(kind).isdigit()]
        wanted = [int(column.removeprefix(kind)) for column in columns]
        values = by_load(result.samples, measure(result.samples), wanted)
        seen = {column: [float(row[column]) for row in expected if row[column]] for column in columns}
        spread = max((max(each) - min(each) for each in seen.values() if each), default=0.0)
        for column, value in zip(columns, values, strict=True):
            what = f"{name} {column}"
            if policy == "Random":
                yield policy, what, _beyond(seen[column], spread, value)
            elif mine[0][column]:
                theirs = float(mine[0][column])
                # As numpy rounds: the reference's figures are data frames.
                own = None if value is None else float(np.round(value, decimals))
                yield policy, what, [] if own == theirs else [_difference(theirs, own)]


def _difference(theirs: float, own: float | None) -> str:
    return f"expected {theirs}, got {own}" + ("" if own is None else f" ({own - theirs:+.3f})")


def _beyond(seen: Sequence[float], spread: float, own: float | None) -> list[str]:
    """Return whether a value is farther from those of the reference than its seeds are from each other, at the
    load where they differ most.
    """
    if not seen:
        return []
    least, largest = min(seen), max(seen)
    if own is not None and least - spread <= own <= largest + spread:
        return []
    return [f"expected {least} to {largest} (± {spread:.3f}), got {own}"]


def _decisions(family: str, expected: Sequence[Row], result: Run) -> Iterator[Result]:
    for at, row in enumerate(expected):
        theirs = row["pod"], row["node"], row["gpu_index"]
        placed = result.placements[at] if at < len(result.placements) else None
        own = placed and (placed.pod, placed.node or "", "-".join(map(str, placed.cards)))
        yield family, f"{at} {row['pod']}", [] if own == theirs else [f"expected {theirs}, got {own}"]


def traces_of(folder: Path) -> Path:
    """Return where the traces are: beside the folder, else beside the checkout."""
    near = (folder / "traces", folder.parent.parent / "traces" / "openb")
    far = Path(__file__).resolve().parents[3] / "shared" / "traces" / "openb"
    return next((path for path in near if (path / NODES).exists()), far)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--traces", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where the traces are."
)
@click.option("--trace", "names", multiple=True, help="Only orders of this trace.")
@click.option("--seed", "seeds", multiple=True, type=int, help="Only orders of this seed.")
@click.option(
    "--policy", "policies", multiple=True, type=click.Choice(list(PROFILES)), help="Only this policy."
)
@click.option("--processes", default=1, help="How many orders run at a time.")
def main(
    folder: Path,
    traces: Path | None,
    names: tuple[str, ...],
    seeds: tuple[int, ...],
    policies: tuple[str, ...],
    processes: int,
) -> None:
    """Compare the fragmentation experiment with the results in FOLDER."""
    folder = folder.resolve()
    orders = [
        order
        for order in orders_in(folder, traces or traces_of(folder))
        if (not names or order.trace in names) and (not seeds or order.seed in seeds)
    ]
    tally = Tally(shown=40)
    ask = partial(compare, policies=policies or tuple(PROFILES))
    if processes > 1:
        with get_context("spawn").Pool(processes) as pool:
            for found in pool.imap(ask, orders):
                _count(tally, found)
    else:
        for order in orders:
            _count(tally, ask(order))
    if not orders:
        tally.add("orders", str(folder), ["no order to run"])
    sys.exit(tally.finish())


def _count(tally: Tally, found: Sequence[Result]) -> None:
    for family, name, differences in found:
        tally.add(family, name, differences)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
