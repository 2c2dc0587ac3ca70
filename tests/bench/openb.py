"""Schedules the openb trace under both shipped profiles: `python -m tests.bench.openb FOLDER`.

Each run is a process of its own, so that its memory is its own. Prints one JSON document.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click

PROFILES = ("kubernetes.v1_36.default", "policies.binpacking.binpacking")
NODES, PODS = "openb_node_list_all_node.csv.gz", "openb_pod_list_default.csv.gz"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(folder: Path) -> None:
    """Run the trace in FOLDER."""
    print(json.dumps({profile: run(folder, profile) for profile in PROFILES}, indent=2))


def run(folder: Path, profile: str) -> object:
    """Return the summary of one run."""
    command = [sys.executable, "-m", "kdsl.cli.main", "simulate", "--format", "openb", "--output", "json"]
    command += ["--cluster", str(folder / NODES), "--pods", str(folder / PODS), "--profile", profile]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout)["summary"]


if __name__ == "__main__":
    main()
