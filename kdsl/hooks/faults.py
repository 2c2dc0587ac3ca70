"""Something that went wrong in an attempt: which rule or plugin, why, where, and on how many nodes.

Rules and plugins make faults, decisions carry them, reports show them. A fault on every node of a cluster is
one value: it counts the nodes and names the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

MOST_NAMED: Final = 3
"""So many nodes are named; the others are counted."""
MOST_FRAMES: Final = 32
"""So many calls of a plugin's traceback are kept, the innermost ones."""

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet
    from kdsl.cluster.snapshot.snapshot import Snapshot

_OWN: Final = str(Path(__file__).parent)
PlaceInCode = tuple[str, int, str]
"""A line of Python that was running: its file, its number and its function."""


class Fault(Struct, frozen=True):
    """What went wrong. `source` is the rule or plugin, `site` the `file:line:col` of an expression.

    `nodes` counts the nodes on which it happened, 0 where it is about none, and `first` names the first in
    visiting order. `code` is where a plugin's Python raised, outermost call first.
    """

    source: str
    message: str
    site: str = ""
    nodes: int = 0
    first: tuple[str, ...] = ()
    code: tuple[PlaceInCode, ...] = ()

    def __str__(self) -> str:
        """Return one line: who, on which nodes, why and where."""
        source = f"{self.source}: " if self.source and self.source not in self.message else ""
        on = f" on {self.where}" if self.nodes else ""
        return f"{source}{self.message}{on}" + (f" ({self.site})" if self.site else "")

    @property
    def where(self) -> str:
        """The nodes in words: `n1`, or `5,000 nodes (n1, n2, n3, …)`."""
        names = ", ".join(self.first)
        if self.nodes == len(self.first) == 1:
            return names
        return f"{self.nodes:,} nodes ({names}{', …' if self.nodes > len(self.first) else ''})"

    @property
    def key(self) -> tuple[str, str]:
        """What faults share that are one: the rule and the expression, else the plugin and its message."""
        return self.source, self.site or self.message

    def on(self, names: Sequence[str], count: int | None = None) -> Fault:
        """Return the fault as it happened on nodes: `count` of them, of which `names` are the first."""
        return replace(self, nodes=len(names) if count is None else count, first=tuple(names[:MOST_NAMED]))


def merged(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return one fault for each `key`, as it first happened, with the nodes of all that share it."""
    found: dict[tuple[str, str], Fault] = {}
    for fault in faults:
        known = found.get(fault.key)
        if known is not None:
            first = tuple(dict.fromkeys((*known.first, *fault.first)))[:MOST_NAMED]
            fault = replace(known, nodes=known.nodes + fault.nodes, first=first)
        found[fault.key] = fault
    return tuple(found.values())


def lines_of(trace: TracebackType | None) -> tuple[PlaceInCode, ...]:
    """Return the lines that were running, outermost call first; those of this package that lead there are
    left out. No frame is kept alive.
    """
    found: list[PlaceInCode] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if found or not code.co_filename.startswith(_OWN):
            found.append((code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return tuple(found[-MOST_FRAMES:])


class RuleFaults(Protocol):
    """Errors that the rules of a profile passed over, so that no answer tells of them.

    Rules are asked again, wherever their answers came from: equal decisions have equal faults.
    """

    @property
    def are_possible(self) -> bool:
        """Tell whether any rule may have passed over an error; asked of every decision."""
        ...

    def of_pod(self, pod: PodInfo, snapshot: Snapshot, until: str) -> Iterable[Fault]:
        """Return what went wrong before nodes were looked at; `until` is the plugin that ended PreFilter, if
        one did.
        """
        ...

    def of_filters(self, pod: PodInfo, reached: Callable[[str, bool], NodeSet]) -> Iterable[Fault]:
        """Return what went wrong at nodes; `reached` returns those that a filter was asked about, or those of
        them that it let pass.
        """
        ...

    def of_scores(self, pod: PodInfo, nodes: NodeSet) -> Iterable[Fault]:
        """Return what went wrong where nodes were scored."""
        ...

    def of_preemption(self) -> Iterable[Fault]:
        """Return what went wrong in the search for room since this was asked last."""
        ...
