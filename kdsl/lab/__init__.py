"""The lab: policies compared on traces. A run is a plain function of a trace, a profile, a seed and
parameters.

Notebooks use `run` and `open`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kdsl.lab.stored import Results


def open(folder: str | Path) -> Results:
    """Open the results of an experiment. Raises InvalidInputError if the folder holds none."""
    from kdsl.lab.stored import open_results

    return open_results(folder)


def run(
    experiment: str | Path, folder: str | Path | None = None, processes: int = 1, on: str = "local"
) -> Results:
    """Run the missing runs of an experiment (a YAML file), and open the results.

    `on` is `local`, or `ray` with the address of a cluster behind a colon. `folder` is by default the name of
    the experiment without its suffix. Raises InvalidInputError if the experiment has mistakes: nothing runs
    then; and KdslError with the reasons if runs failed, once all other runs are done.
    """
    from kdsl.base.errors import KdslError
    from kdsl.lab.executors import executor_of
    from kdsl.lab.experiment import load_experiment
    from kdsl.lab.sweep import sweep

    path = Path(experiment)
    target = Path(folder) if folder is not None else path.with_suffix("")
    done = sweep(load_experiment(path), target, executor_of(on, processes))
    if done.failures:
        reasons = (f"{each.planned}: {each.reason}" for each in done.failures)
        raise KdslError("\n".join((f"{len(done.failures)} of {done.runs} runs failed", *reasons)))
    return open(target)
