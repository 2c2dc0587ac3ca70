"""The content of a test file: `reading` makes cases of it, `running` runs them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from kdsl.base.span import Span
from kdsl.testing.document import PlacedValue
from kdsl.testing.fixtures import Fixtures
from kdsl.testing.recorded import Recorded
from kdsl.testing.session import SessionCluster
from kdsl.testing.subject import Checked, Loaded, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The common part of all cases: name, place, fixtures, and the names of the nodes."""

    name: str
    span: Span
    fixtures: Fixtures = field(repr=False)
    nodes: tuple[str, ...]

    def recorded_for(self, pod: str) -> Recorded | None:
        """Return the recorded decision if it is about `pod`."""
        recorded = self.fixtures.recorded
        return recorded if recorded is not None and recorded.pod == pod else None

    def cluster(self) -> SessionCluster:
        """Build the nodes, the pods that run on them and the catalog."""
        nodes = [self.fixtures.node(name) for name in self.nodes]
        bound = tuple(pod for _, pod in self.fixtures.bound(self.nodes))
        return SessionCluster(nodes, bound, tuple(self.fixtures.catalog.values()))


@dataclass(frozen=True, slots=True)
class PodCase(Setting):
    """One pod is decided; `expect` is the mapping of expected values."""

    pod: str
    expect: PlacedValue


@dataclass(frozen=True, slots=True)
class Arrival:
    """A pod that enters the queue at a second; `priority` replaces the fixture's if it is given."""

    pod: str
    second: int
    priority: int | None


@dataclass(frozen=True, slots=True)
class QueueCase(Setting):
    """Pods enter the queue and are scheduled in its order."""

    arrivals: tuple[Arrival, ...]
    expect: PlacedValue


class LawKind(StrEnum):
    """The kinds of statements about all pods and clusters."""

    SUBSET = "subsetOf"
    EQUAL = "equals"
    DETERMINISTIC = "deterministic"
    ORDER_INDEPENDENT = "order independent"


@dataclass(frozen=True, slots=True)
class Law:
    """A law and the qualified names of its profiles."""

    kind: LawKind
    profiles: tuple[str, ...]

    def __str__(self) -> str:
        if len(self.profiles) == 1:
            return f"{self.kind}: {self.profiles[0]}"
        first, second = self.profiles
        return f"feasible({first}) {self.kind} feasible({second})"


@dataclass(frozen=True, slots=True)
class PropertyCase(Setting):
    """A law must hold for generated pods on generated nodes; the generator uses the words of the fixtures.

    `unproven` is the reason why it may stay unproven, empty where it must not.
    """

    law: Law
    pods: int
    cluster_size: int
    unproven: str = ""


Case = PodCase | QueueCase | PropertyCase


@dataclass(frozen=True, slots=True)
class RuleTest:
    """One test file: its subject, its rule files, and its cases."""

    path: Path
    subject: Subject
    rules: tuple[Path, ...]
    loaded: Loaded
    checked: Checked
    cases: tuple[Case, ...]

    def selected(self, word: str) -> RuleTest:
        """Return the test with the cases that have the word in their name or in the path of their file."""
        if word in str(self.path):
            return self
        return replace(self, cases=tuple(case for case in self.cases if word in case.name))
