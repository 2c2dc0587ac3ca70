"""`python -m tests.fuzz --minutes 10 --seed 1`: exits with 1 where anything but diagnostics came out."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path
from random import Random

from tests.fuzz.driver import Fault, feed, inputs
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Feed all targets in turn until the time is up; write each new fault with its input."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=1.0, help="of computing, not by the clock")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=list(TARGETS), action="append")
    parser.add_argument("--save", type=Path, metavar="DIR", help="where inputs that fail are kept")
    options = parser.parse_args()
    targets = [TARGETS[name] for name in options.target or TARGETS]
    streams = [(target, inputs(target, Random(f"{options.seed} {target.name}"))) for target in targets]
    faults: dict[tuple[str, str], Fault] = {}
    end = time.process_time() + options.minutes * 60
    fed = 0
    for target, stream in itertools.cycle(streams):
        if time.process_time() > end:
            break
        fault = feed(target, next(stream))
        fed += 1
        if fault is not None and (fault.target, fault.place) not in faults:
            faults[fault.target, fault.place] = fault
            print(f"{fault.target}: {fault.error}\n  at {fault.place}", flush=True)
            if options.save is not None:
                options.save.mkdir(parents=True, exist_ok=True)
                (options.save / f"{fault.target}-{len(faults)}").write_bytes(fault.data)
    print(f"seed {options.seed}: {fed:,} inputs, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
