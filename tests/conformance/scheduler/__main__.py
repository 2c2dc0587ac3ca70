"""`python -m tests.conformance.scheduler FILE [--only NAME]...`: drives the recorded scenarios against kdsl.

Prints what differs from kube-scheduler and is not listed, a table of families, and `N passed, M failed`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.conformance.scheduler import runner
from tests.conformance.scheduler.verdict import Verdict
from tests.conformance.tally import Tally


def main(arguments: list[str]) -> int:
    """Drive the scenarios of a file; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.scheduler", description=__doc__)
    parser.add_argument("file", type=Path, help="scheduler.jsonl.gz; extender.jsonl.gz lies beside it")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this scenario")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    work = runner.read(options.file, options.only)
    missing = set(options.only) - set(runner.names(work))
    if missing:
        parser.error(f"no such scenario: {', '.join(sorted(missing))}")
    started, tally, verdict = time.monotonic(), Tally(), Verdict()
    repeated = []
    for outcome in runner.run(work, min(options.jobs, len(work))):
        repeated += [outcome.scenario.name] if outcome.is_repeated else []
        found = verdict.judge(outcome.scenario.name, outcome.compared)
        tally.add(
            outcome.scenario.family, outcome.scenario.name, ["\n  ".join(["", *found])] if found else []
        )
    verdict.print_listed()
    if repeated:
        print(f"\nplayed a second time, alone: {', '.join(repeated)}")
    if not options.only:
        unneeded = verdict.unneeded()
        tally.add("list", "differences.py", unneeded)
    print(f"\n{time.monotonic() - started:.0f} s")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
