"""Jobs: one run of an experiment each, done in this process, in another one, or on another machine."""

from __future__ import annotations

import hashlib
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kdsl import __version__
from kdsl.base.errors import InvalidInputError
from kdsl.lab.experiment import Experiment, Planned, TraceFiles, TraceSource
from kdsl.lab.orders import OrderFiles
from kdsl.lab.results import ResultFolder
from kdsl.lab.rule_places import written_of
from kdsl.lab.rules import RunRules, rules_of
from kdsl.lab.running import run
from kdsl.lab.time import job as timed
from kdsl.lab.trace_sources import input_of, trace_of
from kdsl.lang.discovery import SUFFIX, TWIN_SUFFIX, find_rule_files


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that ended with an error: `digest` is the name of its result, `details` the traceback, if any."""

    planned: Planned
    digest: str
    reason: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to do: `inputs` is all that it depends on, `digest` the name of its result in `folder`."""

    experiment: Experiment
    planned: Planned
    digest: str
    inputs: Mapping[str, Any]
    folder: Path


def rules_for(experiment: Experiment, planned: Planned) -> RunRules:
    """Return the checked rules of a run, with its values. Raises InvalidInputError if they have mistakes."""
    contender = experiment.contenders[planned.name]
    written = written_of(contender.node, planned.values) if contender.node is not None else None
    check = partial(rules_of, contender.profile, planned.values, paths=experiment.rules, written=written)
    try:
        trace = trace_of(experiment.traces[planned.trace])
    except InvalidInputError:
        # Mistakes in rules come first: those of the trace are the same for all rules.
        check(())
        raise
    return check(trace.typical, supply=trace.supply)


def do(job: Job) -> Failure | None:
    """Do a run and write its files. Whatever goes wrong is returned."""
    experiment, planned = job.experiment, job.planned
    contender, source = experiment.contenders[planned.name], experiment.traces[planned.trace]
    results = ResultFolder(job.folder)
    try:
        checked = rules_for(experiment, planned)
        if experiment.time is not None:
            over_time = timed.run_job(
                experiment.time,
                source,
                planned,
                trace_of(source),
                checked.rules,
                checked.profile,
                contender.tie_break,
            )
            timed.write(results, job.digest, job.inputs, over_time)
        else:
            ready = input_of(experiment, planned)
            result = run(checked.rules, checked.profile, ready, planned.seed, contender.tie_break)
            results.write(job.digest, job.inputs, result)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other runs go on
        return Failure(planned, job.digest, f"{type(error).__name__}: {error}", traceback.format_exc())
    return None


# ---- on another machine ------------------------------------------------------------------------------------

Files = Mapping[str, bytes]
"""The content of files by path."""


def files_of(experiment: Experiment) -> dict[str, bytes]:
    """Return the files that the runs of an experiment read, by absolute path."""
    paths: set[Path] = set()
    for source in experiment.traces.values():
        paths.update((source.nodes, source.pods) if isinstance(source, TraceFiles) else source.files)
    if experiment.orders is not None:
        for trace in experiment.traces:
            for seed in experiment.seeds:
                paths.update(experiment.orders.of(trace, seed))
    if experiment.rules:
        paths.update(each.path for each in find_rule_files(experiment.rules, (SUFFIX, TWIN_SUFFIX))[0])
    return {str(path.absolute()): path.read_bytes() for path in sorted(paths)}


def do_with_files(files: Files, job: Job) -> dict[str, bytes] | Failure:
    """Do a run on a machine that does not have its files. Return the files of its result, by relative path.

    The files are written to a temporary folder once for each process.
    """
    if job.inputs["version"] != __version__:
        reason = f"this machine has kdsl {__version__}, the experiment was started by {job.inputs['version']}"
        return Failure(job.planned, job.digest, reason)
    root = _unpacked(files)
    with tempfile.TemporaryDirectory(prefix="kdsl-lab-") as target:
        failure = do(replace(job, experiment=_moved(job.experiment, root), folder=Path(target)))
        if failure is not None:
            return failure
        written = sorted(path for path in Path(target).rglob("*") if path.is_file())
        return {path.relative_to(target).as_posix(): path.read_bytes() for path in written}


def write_files(folder: Path, files: Files) -> None:
    """Write the files of a result, each wholly or not at all; those that others go with come first."""
    for name in sorted(files, key=lambda name: (name.startswith("runs/"), name)):
        ResultFolder(folder).put_bytes(folder / name, files[name])


_UNPACKED: dict[str, tempfile.TemporaryDirectory[str]] = {}
"""The folders with files of experiments, by digest. They go with the process."""


def _unpacked(files: Files) -> Path:
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        digest.update(f"{path}\0{len(content)}\0".encode())
        digest.update(content)
    known = _UNPACKED.get(digest.hexdigest())
    if known is None:
        known = tempfile.TemporaryDirectory(prefix="kdsl-lab-")
        for path, content in files.items():
            target = _below(Path(known.name), Path(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        _UNPACKED[digest.hexdigest()] = known
    return Path(known.name)


def _below(root: Path, path: Path) -> Path:
    """Return the place of an absolute path below a folder."""
    absolute = path.absolute()
    return root / absolute.relative_to(absolute.anchor)


def _moved(experiment: Experiment, root: Path) -> Experiment:
    """Return an experiment that reads its files below a folder."""

    def moved(source: TraceSource) -> TraceSource:
        if isinstance(source, TraceFiles):
            return replace(source, nodes=_below(root, source.nodes), pods=_below(root, source.pods))
        return replace(source, path=_below(root, source.path))

    orders = experiment.orders
    return replace(
        experiment,
        orders=None if orders is None else OrderFiles(_below(root, orders.pods), _below(root, orders.nodes)),
        rules=tuple(_below(root, path) for path in experiment.rules),
        traces={name: moved(source) for name, source in experiment.traces.items()},
    )
