"""Schedules the openb trace: `python -m tests.bench.openb FOLDER`, and with `--cards` with its cards shared.

Without `--cards` the trace runs under both shipped profiles, cards being a resource like any other, and the
summaries are printed as one JSON document. With it the trace runs under the three profiles of
`examples/gpu-sharing`, and a table compares what they come to. Each run is a process of its own, so that its
memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

Json = dict[str, Any]
PROFILES = ("kubernetes.v1_36.default", "policies.binpacking.binpacking")
SHARING = ("sharing.binpack", "sharing.spread", "sharing.fragmentation_aware")
RULES = Path(__file__).parents[2] / "examples" / "gpu-sharing" / "rules"
NODES, PODS = "openb_node_list_all_node.csv.gz", "openb_pod_list_{}.csv.gz"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--cards", is_flag=True, help="Share cards, and compare policies.")
@click.option("--pods", default="default", show_default=True, help="The pod list of the trace.")
def main(folder: Path, cards: bool, pods: str) -> None:
    """Run the trace in FOLDER."""
    if not cards:
        runs = {profile: run(folder, pods, profile)["summary"] for profile in PROFILES}
        print(json.dumps(runs, indent=2))
        return
    row = "{:<28} {:>7} {:>8} {:>10} {:>11} {:>7}"
    print(row.format("PROFILE", "PLACED", "PENDING", "ALLOCATED", "FRAGMENTED", "CPU"))
    for profile in SHARING:
        before = _seconds()
        result = run(folder, pods, profile, "--rules", str(RULES))
        counts, found = result["summary"], result["cards"]
        shares = (f"{found[key]:.1%}" for key in ("allocatedShare", "fragmentation"))
        took = f"{_seconds() - before:.0f} s"
        print(row.format(profile, counts["placed"], counts["pending"], *shares, took), flush=True)


def run(folder: Path, pods: str, profile: str, *options: str) -> Json:
    """Return what `kdsl simulate` says of one run."""
    command = [sys.executable, "-m", "kdsl.cli.main", "simulate", "--format", "openb", "--output", "json"]
    command += ["--cluster", str(folder / NODES), "--pods", str(folder / PODS.format(pods))]
    command += ["--profile", profile, *options]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    result: Json = json.loads(finished.stdout)
    return result


def _seconds() -> float:
    """Return the processor time of all runs so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
