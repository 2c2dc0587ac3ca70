"""Times one run of the lab for each policy: `python -m tests.bench.lab TRACES [--policy FGD] [--timed]`.

TRACES has the tables of the openb trace. A run is the default trace with seed 42: 10,866 pods one after the other on
1,213 nodes, all of which are looked at. Times are of the processor, without reading tables and checking rules; they
include measuring fragmentation after each pod. With `--timed` the 8,152 pods of the trace arrive and end as recorded.
"""

from __future__ import annotations

import time
from pathlib import Path

import click
from kdsl.cycle.decision import TieBreak
from kdsl.lab.rules import rules_of
from kdsl.lab.running import run
from kdsl.lab.time.openb import read_times, timed_trace
from kdsl.lab.time.plan import TimePlan
from kdsl.lab.time.run import run_over_time
from kdsl.lab.traces import Preparation, prepared, read_trace

from tests.conformance.fragmentation import NODES, PROFILES, VALUES


@click.command()
@click.argument("traces", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--trace", default="default", show_default=True, help="The pod list of the trace.")
@click.option(
    "--timed", is_flag=True, help="Let pods arrive and end as recorded, instead of one after the other."
)
@click.option(
    "--policy", "policies", multiple=True, type=click.Choice(list(PROFILES)), help="Only this policy."
)
def main(traces: Path, trace: str, timed: bool, policies: tuple[str, ...]) -> None:
    """Run the policies on the trace in TRACES."""
    table = traces / f"openb_pod_list_{trace}.csv.gz"
    read, _ = read_trace(traces / NODES, table)
    ready = read if timed else prepared(read, 42, Preparation())
    times = read_times(table)[0] if timed else {}
    row = "{:<14} {:>7} {:>7} {:>9} {:>10}"
    print(row.format("POLICY", "PODS", "PLACED", "CPU", "PODS/S"))
    for policy in policies or tuple(PROFILES):
        checked = rules_of(f"policies.atc23.{PROFILES[policy]}", VALUES.get(policy, {}), read.typical)
        tie_break = TieBreak.RANDOM if policy == "Random" else TieBreak.FIRST
        before = time.process_time()
        if timed:
            workload = timed_trace(read, times)
            over_time = run_over_time(
                checked.rules, checked.profile, workload, TimePlan(), 42, tie_break, read.typical
            )
            placed = sum(each.started is not None for each in over_time.pods)
        else:
            result = run(checked.rules, checked.profile, ready, 42, tie_break)
            placed = sum(each.node is not None for each in result.placements)
        took = time.process_time() - before
        print(row.format(policy, len(ready.pods), placed, f"{took:.1f} s", f"{len(ready.pods) / took:,.0f}"))


if __name__ == "__main__":
    main()
