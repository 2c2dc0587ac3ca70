"""The results of an experiment, opened again for notebooks and reports.

Tables are pyarrow's. A folder or file that is missing or no such file is a diagnostic.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError, KdslError, reason_of
from kdsl.base.file_policy import read_written
from kdsl.lab.codes import LabCode
from kdsl.lab.results import INPUTS, ResultFolder, arrow

if TYPE_CHECKING:
    import pandas
    import pyarrow

OF_RUNS: Final = {"trace": "text", "profile": "text", "parameters": "text", "seed": "number", "run": "text"}
"""The columns that every table of results has, and their meaning."""
OF_LOADS: Final = frozenset({"load", "allocation", "lost_of_idle", "lost_of_all"})
"""The columns with a value for each load; all others have one for each run."""
DECISIONS: Final = {"pod": "text", "node": "text", "cards": "numbers", "reason": "text"}
"""The columns that the decisions of every run have, and their meaning."""
_SAMPLES: Final = {"arrived": "number", "used": "number", "lost": "number"}
_NODES: Final = {"node": "text", "cards": "number", "model": "text"}
LARGEST_TABLE: Final = 2**20
"""The most rows of the table of all runs: a thousand times the runs of a paper."""
LARGEST_TEXT: Final = 2**24
"""The most bytes of the text of rules."""
LARGEST_FILE: Final = 2**24
"""The most rows of any file."""


@dataclass(frozen=True)
class Results:
    """The folder that `kdsl lab run` wrote."""

    path: Path
    _all: Any = field(repr=False)

    @property
    def is_timed(self) -> bool:
        """Return whether the runs are over time: such a run has one row, any other one row for each load."""
        return "load" not in self._all.column_names

    def table(self) -> pyarrow.Table:
        """Return the table of all runs: a row for each run, and for each load if runs are not over time."""
        return self._all

    def pandas(self) -> pandas.DataFrame:
        """Return the table of all runs as a data frame. KdslError if pandas is not installed."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise KdslError("data frames are those of pandas: install it, or use `.table()`") from error
        return self._all.to_pandas()

    def runs(self) -> pyarrow.Table:
        """Return a row for each run, in the order of the experiment, with the columns that have one value."""
        names = [name for name in self._all.column_names if name not in OF_LOADS]
        first: dict[str, int] = {}
        for row, run in enumerate(self._all.column("run").to_pylist()):
            first.setdefault(run, row)
        return rows_at(self._all.select(names), list(first.values()))

    def decisions(self, run: str, columns: list[str] | None = None) -> pyarrow.Table:
        """Return the decisions of a run: a row for each pod in order of arrival.

        `run` is its digest, or the first characters of it.
        """
        return self._read(self._folder.file_of(self.digest(run)), DECISIONS, columns)

    def series(self, run: str) -> pyarrow.Table:
        """Return the measures of a run in order: over time, a row for each sample; otherwise a row for each
        pod that arrived, with `load`, `allocation`, `lost_of_idle` and `lost_of_all` in percent.
        """
        digest = self.digest(run)
        if self.is_timed:
            return self._read(self._folder.series_of(digest), {"time": "number"})
        from kdsl.lab.running import allocation, lost_of_all, lost_of_idle

        path = self._folder.file_of(digest)
        self._read(path, {**DECISIONS, **_SAMPLES}, [])
        try:
            samples, _ = self._folder.read(digest)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise refused(path, f"`{path}` does not say how many cards there were") from error
        return arrow().table(
            {
                "load": 100 * samples.arrived / samples.total,
                "allocation": allocation(samples),
                "lost_of_idle": lost_of_idle(samples),
                "lost_of_all": lost_of_all(samples),
            }
        )

    def inputs(self, run: str) -> Mapping[str, Any]:
        """Return the inputs of a run: digests of its tables and rules, the preparation, the seed, …"""
        path = self._folder.file_of(self.digest(run))
        metadata: Mapping[bytes, bytes] = (
            _opened(self.path, path, lambda file: file.schema_arrow.metadata) or {}
        )
        try:
            values = json.loads(metadata.get(INPUTS, b""))
        except (ValueError, RecursionError) as error:
            raise refused(path, f"`{path}` does not say what the run depends on") from error
        if not isinstance(values, dict):
            raise refused(path, f"`{path}` does not say what the run depends on")
        return values

    def rules(self, run: str) -> str | None:
        """Return the text of the rules of a run; None if the folder lacks it."""
        inputs = self.inputs(run)
        path = self._folder.rules_file(_name(inputs.get("rules")), _name(inputs.get("profile")))
        try:
            content = read_written(self.path, str(path.relative_to(self.path)), LARGEST_TEXT)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        return content.decode("utf-8", errors="replace")

    def nodes(self, run: str) -> pyarrow.Table | None:
        """Return the nodes of the trace of a run, by the names in the trace; None if the folder lacks them.

        Where a run was prepared with `shuffle`, its nodes have their rank before these names.
        """
        path = self._folder.nodes_file(_name(self.inputs(run).get("nodes")))
        return self._read(path, _NODES) if os.path.lexists(path) else None

    def digest(self, run: str) -> str:
        """Return the digest of the run whose digest begins with `run`; InvalidInputError unless it is one."""
        if run in self._digests:
            return run
        found = [each for each in self._digests if each.startswith(run)]
        if len(found) != 1:
            many = (
                f"{len(found)} runs have a digest that begins" if found else "no run has a digest that begins"
            )
            raise refused(self.path, f"{many} with `{run}`")
        return found[0]

    @cached_property
    def _digests(self) -> Mapping[str, None]:
        return dict.fromkeys(self._all.column("run").to_pylist())

    def _read(self, path: Path, wanted: Mapping[str, str], columns: list[str] | None = None) -> Any:
        return _read(self.path, path, wanted, columns)

    @property
    def _folder(self) -> ResultFolder:
        return ResultFolder(self.path)


def open_results(path: str | Path) -> Results:
    """Open the folder that `kdsl lab run` wrote. Raises InvalidInputError if it holds no table of results."""
    folder = Path(path)
    file = folder / "results.parquet"
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        hint = "write it with `kdsl lab run EXPERIMENT.yaml --out DIR`"
        raise refused(folder, f"`{folder}` holds no results.parquet", hint) from None
    except OSError as error:
        raise refused(folder, f"cannot read `{folder}`: {reason_of(error)}") from None
    table = _read(folder, file, OF_RUNS)
    _check_runs(file, table)
    return Results(folder, table)


def _check_runs(file: Path, table: Any) -> None:
    """Raise InvalidInputError if columns that identify runs have values of other types or of no use."""
    if table.num_rows > LARGEST_TABLE:
        raise refused(file, f"`{file}` has {table.num_rows} rows: at most {LARGEST_TABLE} are read")
    for name in table.column_names:
        if name not in {*OF_RUNS, "load"} and not _holds(table.schema.field(name).type, "number"):
            raise refused(file, f"column `{name}` of `{file}` does not hold numbers")
    for name in (*OF_RUNS, *({"load"} & set(table.column_names))):
        values = table.column(name).to_pylist()
        kind = str if OF_RUNS.get(name) == "text" else int
        if not all(isinstance(value, kind) for value in values):
            said = "no text" if kind is str else "no whole number"
            raise refused(file, f"column `{name}` of `{file}` holds a value that is {said}")
        if name == "run" and not all(value and value.isalnum() and value.isascii() for value in values):
            raise refused(file, f"column `run` of `{file}` holds a value that is no digest")


def _name(value: object) -> str:
    """Return a digest or qualified name as a part of a file's name; any other text names no file."""
    text = value if isinstance(value, str) else ""
    return text if text.replace(".", "").replace("_", "").isalnum() else "-"


def _read(folder: Path, path: Path, wanted: Mapping[str, str], columns: list[str] | None = None) -> Any:
    """Read a Parquet file of a folder of results, or those of `columns` that it has.

    Raises InvalidInputError if it is none, lacks one of the `wanted` columns, or holds something else there.
    """

    def read(file: Any) -> Any:
        names = file.schema_arrow.names
        for name, kind in wanted.items():
            if names.count(name) != 1:
                count = f"{names.count(name)} columns" if name in names else "no column"
                raise refused(path, f"`{path}` has {count} `{name}`")
            if not _holds(file.schema_arrow.field(name).type, kind):
                raise refused(path, f"column `{name}` of `{path}` does not hold {_IN_WORDS[kind]}")
        if file.metadata.num_rows > LARGEST_FILE:
            raise refused(
                path, f"`{path}` has {file.metadata.num_rows} rows: at most {LARGEST_FILE} are read"
            )
        known = None if columns is None else [name for name in columns if name in names]
        table = file.read(known, use_threads=False)
        table.validate(full=True)
        return table

    return _opened(folder, path, read)


_IN_WORDS: Final = {"text": "text", "number": "numbers", "numbers": "lists of whole numbers"}


def _holds(kind: Any, wanted: str) -> bool:
    """Return whether values of an Arrow type are of a kind, or all missing."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return True
    if wanted == "text":
        return bool(types.is_string(kind) or types.is_large_string(kind))
    if wanted == "numbers":
        return bool(
            (types.is_list(kind) or types.is_large_list(kind))
            and (types.is_integer(kind.value_type) or types.is_null(kind.value_type))
        )
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _opened(folder: Path, path: Path, use: Callable[[Any], Any]) -> Any:
    """Return the result of `use` for a Parquet file of a folder of results.

    Raises InvalidInputError if it is none, or a link that leaves its folder.
    """
    pa = arrow()
    try:
        with ResultFolder(folder).opened(path) as content, pa.parquet.ParquetFile(content) as file:
            return use(file)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InvalidInputError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return refused(path, f"cannot read `{path}`: {reason.splitlines()[0].lower()}")


def rows_at(table: Any, places: Sequence[int]) -> Any:
    """Return some rows of a table."""
    pa = arrow()
    return table.take(pa.array(places, pa.int64()))


def refused(path: Path, title: str, *hints: str) -> InvalidInputError:
    """Return the error for a folder or file of results that cannot be used."""
    return InvalidInputError([Diagnostic(LabCode.RESULTS, title, where=str(path), help=hints)])
