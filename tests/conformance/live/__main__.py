"""`python -m tests.conformance.live FILE [NAME...]`: replays recorded conversations with an API server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.conformance.live.replay import read_scenarios, replay_all
from tests.conformance.tally import Tally


def main(arguments: list[str]) -> int:
    """Replay a file, or some of its scenarios; return the exit code."""
    if not arguments:
        print(__doc__)
        return 2
    names = set(arguments[1:])
    scenarios = [item for item in read_scenarios(Path(arguments[0])) if not names or item["name"] in names]
    tally = Tally()
    for scenario, differences in zip(scenarios, asyncio.run(replay_all(scenarios)), strict=True):
        tally.add(
            scenario["name"], scenario["name"], ["\n  ".join(["", *differences])] if differences else []
        )
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
