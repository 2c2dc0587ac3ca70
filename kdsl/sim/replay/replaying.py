"""A record decided again, in one of the two modes."""

from __future__ import annotations

from collections.abc import Callable

from kdsl.base.garbage import settled_heap
from kdsl.cluster.read.files import InputFile
from kdsl.explain.differences import Mode, Replayed
from kdsl.sim.comparison import Side
from kdsl.sim.replay.cumulative import replay_cumulative
from kdsl.sim.replay.independent import replay_independent
from kdsl.sim.replay.survey import Survey


def replayed(
    mode: Mode,
    old: Side | None,
    new: Side,
    file: InputFile,
    survey: Survey,
    on_decision: Callable[[], None] = lambda: None,
) -> Replayed:
    """Decide a record under both sides; without `old`, compare with the recorded decisions.

    `survey` is that of the file. Seed, tie-break and percentage of nodes are the recorded ones. Raises
    InvalidInputError at the first line with mistakes. `on_decision` is called after each decision.
    """
    run = replay_independent if mode is Mode.INDEPENDENT else replay_cumulative
    with settled_heap():
        return run(old, new, file, survey, on_decision)
