"""Recorded decisions as fixtures: `from: [trace.jsonl#cycle=812]` is the cluster of that decision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.files import read_written_file
from kdsl.cluster.read.reader import Manifest, read_values
from kdsl.cycle.decision import TieBreak
from kdsl.cycle.engine_options import EngineOptions
from kdsl.records.cycles import RecordedCycle, read_cycle
from kdsl.records.lines import RecordError, Start
from kdsl.testing.codes import TestCode
from kdsl.testing.document import PlacedValue

_CYCLE: Final = re.compile(r"(?P<file>.+)#cycle=(?P<number>\d{1,9})")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded decision and the state of its engine; `pod` is the fixture of its pod."""

    pod: str
    cycle: RecordedCycle

    @property
    def decision(self) -> Mapping[str, Any]:
        return self.cycle.decision

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the rules and plugins with errors."""
        found = self.decision.get("faults", ())
        return tuple(str(each["source"]) for each in found if isinstance(each, Mapping) and "source" in each)

    @property
    def options(self) -> EngineOptions:
        """Return the options and the state of the recorded engine."""
        engine = self.cycle.engine
        return EngineOptions(
            seed=engine.seed,
            tie_break=TieBreak(engine.tie_break),
            percentage=engine.percentage,
            start=engine.start_index,
            attempts=engine.attempts,
        )

    def promised(self) -> Iterator[PodInfo]:
        """Yield the other nominated pods, with their nodes."""
        return map(PodInfo.of, read_values(self.cycle.engine.promised).pods)


def is_cycle(pattern: str) -> bool:
    """Return whether a pattern of `from` names a recorded cycle."""
    return _CYCLE.fullmatch(pattern) is not None


def is_record(document: object) -> bool:
    """Return whether a document is the first line of a record."""
    return isinstance(document, dict) and document.get("kind") == Start.__struct_config__.tag


def no_cycle(path: Path, pattern: PlacedValue) -> Diagnostic:
    """Return the diagnostic of a record in the place of a file of objects."""
    title = f"`{path.name}` is a record without the number of a cycle"
    return Diagnostic(
        TestCode.NO_MANIFEST, title, pattern.span, "a whole record", help=cycle_help(pattern.text)
    )


def cycle_help(pattern: str) -> tuple[str, ...]:
    """Return the help line with the notation of a record's cycle."""
    return (f"cycles are counted from 0: `{pattern.partition('#')[0]}#cycle=0`",)


def find_cycle(pattern: PlacedValue, folder: Path, found: list[Diagnostic]) -> RecordedCycle | None:
    """Read the recorded cycle that a pattern names; None where there is none, with the reason in `found`."""
    match = _CYCLE.fullmatch(pattern.text)
    # INVARIANT: called only for patterns that name a cycle.
    assert match is not None
    problems: list[Diagnostic] = []
    file = read_written_file(folder, match["file"], problems)
    try:
        if file is not None:
            return read_cycle(file, int(match["number"]))
        why = problems[0].title
    except RecordError as error:
        why = str(error)
    found.append(Diagnostic(TestCode.NO_MANIFEST, why, pattern.span, "relative to this file"))
    return None


def name_objects(cycle: RecordedCycle) -> Iterator[tuple[str, Manifest]]:
    """Yield the objects of a cycle, each with a name: a pod's name includes its namespace where two pods have
    the same name. The last one is the pod that was decided.
    """
    taken: set[str] = set()
    for manifest in (*cycle.objects, cycle.pod):
        meta = manifest["metadata"]
        name = str(meta["name"])
        if manifest["kind"] == Pod.KIND:
            name = f"{meta.get('namespace') or 'default'}/{name}" if name in taken else name
            taken.add(name)
        yield name, manifest
