"""Results as Parquet files: one for each run, called by a digest of all that it depends on, and a table of
all runs. Beside them are other inputs of reports: the text of the rules, and the nodes of the traces.

A run whose file is there is not run again. Files are written beside their place and renamed, so a crash
leaves no half of one. Equal runs give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from kdsl.base.errors import KdslError
from kdsl.base.file_policy import open_written
from kdsl.base.whole_file import whole_file
from kdsl.lab.running import Run, Samples, allocation, by_load, lost_of_all, lost_of_idle
from kdsl.lab.traces import TraceNode

if TYPE_CHECKING:
    import pyarrow

FORMAT: Final = 1
"""Rises when the content of files changes: older ones are not read then."""
INPUTS: Final = b"kdsl.inputs"
"""The key of the inputs in the metadata of a run's file."""


def arrow() -> Any:
    """Return pyarrow; KdslError if it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise KdslError("the lab writes Parquet: install `kdsl[lab]`") from error
    return pyarrow


def digest_of(inputs: Mapping[str, Any]) -> str:
    """Return the name of a run by its inputs, which are plain values."""
    text = json.dumps({"format": FORMAT, **inputs}, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """A folder of results."""

    path: Path

    def file_of(self, digest: str) -> Path:
        return self.path / "runs" / f"{digest}.parquet"

    def series_of(self, digest: str) -> Path:
        """Return the file with the samples of a run over time."""
        return self.path / "series" / f"{digest}.parquet"

    def has(self, digest: str, is_timed: bool = False) -> bool:
        """Return whether a run is there, with the samples of a run over time."""
        return self.file_of(digest).exists() and (not is_timed or self.series_of(digest).exists())

    def write(self, digest: str, inputs: Mapping[str, Any], result: Run) -> None:
        """Write the decisions and samples of a run."""
        pa = arrow()
        samples = result.samples
        table = pa.table(
            {
                "pod": pa.array([placed.pod for placed in result.placements], pa.string()),
                "node": pa.array([placed.node for placed in result.placements], pa.string()),
                "cards": pa.array([list(placed.cards) for placed in result.placements], pa.list_(pa.int32())),
                "reason": pa.array([placed.reason for placed in result.placements], pa.string()),
                "arrived": pa.array(samples.arrived, pa.int64()),
                "used": pa.array(samples.used, pa.int64()),
                "lost": pa.array(samples.lost, pa.float64()),
            }
        )
        text = json.dumps({**inputs, "cards": samples.total}, sort_keys=True)
        self.put(self.file_of(digest), table.replace_schema_metadata({INPUTS: text.encode()}))

    def opened(self, path: Path) -> BinaryIO:
        """Open a file of the folder. Raises OSError, also for a file that is not regular and for a link that
        leaves the folder it stands in.
        """
        return open_written(self.path, str(path.relative_to(self.path)))

    def read(self, digest: str) -> tuple[Samples, int]:
        """Return the samples of a run and the number of its pods without a node.

        Raises OSError, ArrowException, KeyError, TypeError, ValueError or RecursionError if its file is not
        one that `write` wrote.
        """
        names = ("arrived", "used", "lost")
        with self.opened(self.file_of(digest)) as file:
            # All columns: a file with a broken one is made again.
            table = arrow().parquet.read_table(file)
        cards = json.loads(table.schema.metadata[INPUTS])["cards"]
        columns = [table.column(name).to_numpy() for name in names]
        if [column.dtype.kind for column in columns] != ["i", "i", "f"] or not np.isfinite(columns[2]).all():
            raise ValueError(f"the samples of run {digest} are no numbers")
        if not isinstance(cards, int) or cards <= 0:
            raise ValueError(f"run {digest} has {cards} cards")
        arrived, used, lost = map(np.ascontiguousarray, columns)
        return Samples(cards, arrived, used, lost), table.column("node").null_count

    def rules_file(self, rules: str, profile: str) -> Path:
        """Return the file with the text of a profile in the rules of this digest."""
        return self.path / "rules" / f"{rules}-{profile}.txt"

    def nodes_file(self, digest: str) -> Path:
        """Return the file with the nodes of a trace, by the digest of its node table."""
        return self.path / "nodes" / f"{digest}.parquet"

    def write_failure(self, digest: str, text: str) -> None:
        """Write why a run failed."""
        self.put_bytes(self.path / "failures" / f"{digest}.txt", f"{text.rstrip()}\n".encode())

    def remove_failures(self, digests: Iterable[str]) -> None:
        """Remove why runs failed, those of which that is known."""
        known = {path.name for path in (self.path / "failures").glob("*.txt")}
        for digest in digests if known else ():
            if f"{digest}.txt" in known:
                (self.path / "failures" / f"{digest}.txt").unlink(missing_ok=True)

    def write_rules(self, rules: str, profile: str, text: str) -> None:
        """Write the text of a profile, if it is not there."""
        path = self.rules_file(rules, profile)
        if not path.exists():
            self.put_bytes(path, text.encode())

    def write_nodes(self, digest: str, nodes: Sequence[TraceNode]) -> None:
        """Write the nodes of a trace, if they are not there: CPU in thousandths, memory in MiB."""
        if not self.nodes_file(digest).exists():
            pa = arrow()
            columns = {
                "node": pa.array([node.name for node in nodes], pa.string()),
                "cpu": pa.array([node.cpu for node in nodes], pa.int64()),
                "memory": pa.array([node.memory for node in nodes], pa.int64()),
                "cards": pa.array([node.cards for node in nodes], pa.int64()),
                "model": pa.array([node.model for node in nodes], pa.string()),
            }
            self.put(self.nodes_file(digest), pa.table(columns))

    def write_table(self, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write the table of all runs; return its path."""
        pa = arrow()
        schema = pa.schema(
            [
                *((name, pa.string()) for name in ("trace", "profile", "parameters")),
                ("seed", pa.int64()),
                ("load", pa.int64()),
                *((name, pa.float64()) for name in ("allocation", "lost_of_idle", "lost_of_all")),
                *((name, pa.int64()) for name in ("pods", "pending")),
                ("run", pa.string()),
            ]
        )
        path = self.path / "results.parquet"
        self.put(path, pa.Table.from_pylist(list(rows), schema))
        return path

    def put(self, path: Path, table: pyarrow.Table) -> None:
        """Write a table to a file, wholly or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, follows_link=False) as beside:
            arrow().parquet.write_table(table, beside, compression="zstd")

    def put_bytes(self, path: Path, content: bytes) -> None:
        """Write a file, wholly or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, follows_link=False) as beside:
            beside.write_bytes(content)


def rows_of(
    about: Mapping[str, Any], samples: Samples, pending: int, loads: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the rows of a run in the table of all runs: one for each load."""
    figures = (allocation(samples), lost_of_idle(samples), lost_of_all(samples))
    columns = [list(by_load(samples, values, loads)) for values in figures]
    return [
        {
            **about,
            "load": load,
            "allocation": used,
            "lost_of_idle": of_idle,
            "lost_of_all": of_all,
            "pods": len(samples.arrived),
            "pending": pending,
        }
        for load, used, of_idle, of_all in zip(loads, *columns, strict=True)
    ]
