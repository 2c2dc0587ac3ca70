"""An error in an attempt: the rule or plugin, the reason, the place, and the number of nodes.

Rules and plugins create faults, decisions hold them, reports show them. A fault on every node of a cluster is
one value: it counts the nodes and names the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kdsl.base import containment

MOST_NAMED: Final = 3
"""The largest number of nodes that are named; the others are counted."""
MOST_MESSAGES: Final = 3
"""The largest number of messages that a run tells apart at one place: each pod or node may have its own."""
OTHER_MESSAGES: Final = "other errors"
MOST_FRAMES: Final = 32
"""The largest number of frames of a plugin's traceback, the innermost ones."""

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet
    from kdsl.cluster.snapshot.snapshot import Snapshot

_CALLERS: Final = (str(Path(__file__).parent), containment.__file__)
"""The files of code that calls plugins."""
PlaceInCode = tuple[str, int, str]
"""A line of running Python code: its file, its number and its function."""


class Fault(Struct, frozen=True):
    """An error. `source` is the rule or plugin, `site` the `file:line:col` of an expression.

    `nodes` counts the nodes with this error, 0 where it is not about a node, and `first` names the first in
    visiting order. `code` is the place where a plugin's Python raised, outermost call first.
    """

    source: str
    message: str
    site: str = ""
    nodes: int = 0
    first: tuple[str, ...] = ()
    code: tuple[PlaceInCode, ...] = ()

    def __str__(self) -> str:
        """Return one line: the source, the nodes, the reason and the place."""
        source = f"{self.source}: " if self.source and self.source not in self.message else ""
        on = f" on {self.where}" if self.nodes else ""
        return f"{source}{self.message}{on}" + (f" ({self.site})" if self.site else "")

    @property
    def where(self) -> str:
        """Return the nodes in words: `n1`, or `5,000 nodes (n1, n2, n3, …)`."""
        names = ", ".join(self.first)
        if self.nodes == len(self.first) == 1:
            return names
        return f"{self.nodes:,} nodes ({names}{', …' if self.nodes > len(self.first) else ''})"

    @property
    def key(self) -> tuple[str, str]:
        """Return the key that identifies equal faults: the rule and the expression, else the plugin and its
        message.
        """
        return self.source, self.site or self.message

    def on(self, names: Sequence[str], count: int | None = None) -> Fault:
        """Return the fault for `count` nodes, of which `names` are the first."""
        return replace(self, nodes=len(names) if count is None else count, first=tuple(names[:MOST_NAMED]))


class ToldApart:
    """The messages at each place of a run: the first few are kept, later ones become `OTHER_MESSAGES`."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], set[str]] = {}

    def __call__(self, fault: Fault) -> Fault:
        """Return the fault, with its own message if it is one of the first at its place."""
        seen = self._seen.setdefault(fault.key, set())
        if fault.message not in seen and len(seen) >= MOST_MESSAGES:
            return replace(fault, message=OTHER_MESSAGES)
        seen.add(fault.message)
        return fault


def merged(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return one fault for each `key`, in its first form, with the nodes of all equal ones."""
    found: dict[tuple[str, str], Fault] = {}
    for fault in faults:
        known = found.get(fault.key)
        if known is not None:
            first = tuple(dict.fromkeys((*known.first, *fault.first)))[:MOST_NAMED]
            fault = replace(known, nodes=known.nodes + fault.nodes, first=first)
        found[fault.key] = fault
    return tuple(found.values())


def lines_of(trace: TracebackType | None) -> tuple[PlaceInCode, ...]:
    """Return the lines that were running, outermost call first, without the lines of callers before the
    plugin's. No frame is kept alive.
    """
    found: list[PlaceInCode] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if found or not code.co_filename.startswith(_CALLERS):
            found.append((code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return tuple(found[-MOST_FRAMES:])


class CollectsRuleFaults(Protocol):
    """Errors that the rules of a profile ignored, so that no answer shows them.

    Rules run again even if their answers came from a memo: equal decisions have equal faults.
    """

    @property
    def may_have_faults(self) -> bool:
        """Return whether any rule may have ignored an error; called for every decision."""
        ...

    def faults_of_pod(
        self, pod: PodInfo, snapshot: Snapshot, ran: Collection[str], ended_by: str
    ) -> Iterable[Fault]:
        """Return the errors before nodes were judged. `ran` are the plugins whose PreFilter ran; if one ended
        the phase, it is `ended_by`.
        """
        ...

    def faults_of_filters(self, pod: PodInfo, reached: Callable[[str, bool], NodeSet]) -> Iterable[Fault]:
        """Return the errors on nodes; `reached` returns the nodes that reached a filter, or those that it let
        pass.
        """
        ...

    def faults_of_scores(self, pod: PodInfo, nodes: NodeSet) -> Iterable[Fault]:
        """Return the errors of scoring nodes."""
        ...

    def faults_of_preemption(self) -> Iterable[Fault]:
        """Return the errors of the searches for room since the last call."""
        ...
