"""Recorded decisions as fixtures: `from: [trace.jsonl#cycle=812]` is the cluster as that pod found it."""

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
from kdsl.cycle.engine import EngineOptions
from kdsl.testing.codes import TestCode
from kdsl.testing.document import Place
from kdsl.trace.lines import Start
from kdsl.trace.reading import RecordedCycle, TraceError, read_cycle

_CYCLE: Final = re.compile(r"(?P<file>.+)#cycle=(?P<number>\d{1,9})")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded decision and what its engine knew; `pod` is the fixture of the pod that it is about."""

    pod: str
    cycle: RecordedCycle

    @property
    def decision(self) -> Mapping[str, Any]:
        return self.cycle.decision

    @property
    def faults(self) -> tuple[str, ...]:
        """The rules and plugins that went wrong."""
        found = self.decision.get("faults", ())
        return tuple(str(each["source"]) for each in found if isinstance(each, Mapping) and "source" in each)

    @property
    def options(self) -> EngineOptions:
        """What the engine was told, and where it was."""
        engine = self.cycle.engine
        return EngineOptions(
            seed=engine.seed,
            tie_break=TieBreak(engine.tie_break),
            percentage=engine.percentage,
            start=engine.start_index,
            attempts=engine.attempts,
        )

    def promised(self) -> Iterator[PodInfo]:
        """Yield the other pods that were nominated, with their nodes."""
        return map(PodInfo.of, read_values(self.cycle.engine.promised).pods)


def is_cycle(pattern: str) -> bool:
    """Tell whether a pattern of `from` names a recorded cycle."""
    return _CYCLE.fullmatch(pattern) is not None


def is_trace(document: object) -> bool:
    """Tell whether a document is the first line of a trace."""
    return isinstance(document, dict) and document.get("kind") == Start.__struct_config__.tag


def no_cycle(path: Path, pattern: Place) -> Diagnostic:
    """Report a trace that is taken for a file of objects."""
    title = f"`{path.name}` is a trace, and which of its cycles is meant is not said"
    return Diagnostic(
        TestCode.NO_MANIFEST, title, pattern.span, "a whole trace", help=cycle_help(pattern.text)
    )


def cycle_help(pattern: str) -> tuple[str, ...]:
    """Say how the cycle of a trace is written."""
    return (f"cycles are counted from 0: `{pattern.partition('#')[0]}#cycle=0`",)


def find_cycle(pattern: Place, folder: Path, found: list[Diagnostic]) -> RecordedCycle | None:
    """Read the recorded cycle that a pattern names; None where there is none, which `found` then says."""
    match = _CYCLE.fullmatch(pattern.text)
    # INVARIANT: asked for patterns that name a cycle only.
    assert match is not None
    problems: list[Diagnostic] = []
    file = read_written_file(folder, match["file"], problems)
    try:
        if file is not None:
            return read_cycle(file, int(match["number"]))
        why = problems[0].title
    except TraceError as error:
        why = str(error)
    found.append(Diagnostic(TestCode.NO_MANIFEST, why, pattern.span, "relative to this file"))
    return None


def name_objects(cycle: RecordedCycle) -> Iterator[tuple[str, Manifest]]:
    """Yield the objects of a cycle with a name for each: a pod has its namespace in it where another pod has
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
