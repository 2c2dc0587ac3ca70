"""Traces by their form: reading each as a workload over time, and the files that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from kdsl.lab.inputs.mapped import read_mapped
from kdsl.lab.inputs.mapping_file import load_mapping
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.simulator import read_export
from kdsl.lab.inputs.snapshots import read_snapshots, snapshot_files
from kdsl.lab.inputs.watch import read_watch


class TraceForm(StrEnum):
    """The forms of traces beside the tables of the openb trace."""

    MAPPING = "mapping"
    SNAPSHOTS = "snapshots"
    WATCH = "watch"
    SIMULATOR = "simulator"


@dataclass(frozen=True, slots=True)
class OtherTrace:
    """A trace of some form: `path` is the file of the mapping, log or export, or the folder of snapshots."""

    form: TraceForm
    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the workload depends on. Raises InvalidInputError for a mapping with mistakes."""
        match self.form:
            case TraceForm.MAPPING:
                return load_mapping(self.path).files
            case TraceForm.SNAPSHOTS:
                return snapshot_files(self.path)
            case _:
                return (self.path,)


def read_timed(trace: OtherTrace, *, keeps_manifests: bool = False) -> Reading:
    """Read a trace. Mistakes in its files are in the reading; InvalidInputError is raised for a mapping with
    mistakes.
    """
    if trace.form is TraceForm.MAPPING:
        return read_mapped(load_mapping(trace.path), keeps_manifests=keeps_manifests)
    return _READERS[trace.form](trace.path, keeps_manifests=keeps_manifests)


_READERS: Final[Mapping[TraceForm, Callable[..., Reading]]] = {
    TraceForm.SNAPSHOTS: read_snapshots,
    TraceForm.WATCH: read_watch,
    TraceForm.SIMULATOR: read_export,
}
