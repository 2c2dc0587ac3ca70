"""The nodes, the pods and the catalog of a test file, built anew for every case.

`fixture_reading.py` reads them; a `matrix` changes one key of a fixture before it is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.span import Span
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.pod_classes import PodClasses
from kdsl.cluster.read.reader import read_values
from kdsl.testing.codes import TestCode
from kdsl.testing.document import PlacedValue
from kdsl.testing.manifest import (
    NODE_EDITS,
    POD_EDITS,
    Edit,
    Manifest,
)
from kdsl.testing.recorded import Recorded


class FixtureKind(StrEnum):
    """The kind of a fixture."""

    NODES = "nodes"
    PODS = "pods"

    @property
    def noun(self) -> str:
        return self.value.removesuffix("s")

    @property
    def edits(self) -> Mapping[str, Edit]:
        return NODE_EDITS if self is FixtureKind.NODES else POD_EDITS


@dataclass(frozen=True, slots=True)
class Fixture:
    """One fixture: its resolved manifest, and for a bound pod its node and number.

    `span` is its name in the text; `place` its written value, None for a manifest from a file.
    """

    kind: FixtureKind
    name: str
    manifest: Manifest
    span: Span
    place: PlacedValue | None = None
    on: str = ""
    count: int = 1

    @property
    def named(self) -> str:
        """Return the names of its pods, those of several as a range."""
        return self.name if self.count == 1 else f"{self.name}-1 to {self.name}-{self.count}"

    @property
    def copies(self) -> tuple[str, ...]:
        """Return the names of its pods: those of several are numbered."""
        return (self.name,) if self.count == 1 else tuple(f"{self.name}-{at + 1}" for at in range(self.count))


Change = tuple[FixtureKind, str, str, Any]
"""Kind and name of a fixture, a short-form key, and its new value."""


@dataclass(slots=True)
class Fixtures:
    """All fixtures of a test file by kind and name. `broken` are those with diagnostics.

    `catalog` are the objects that are neither node nor pod; they have no short form, and every case has them.
    `classes` are the priority classes that pods may name. `recorded` is the decision that was recorded on
    this cluster, if any. They are not `whole` where a file was not read: its content is unknown.
    """

    of: dict[FixtureKind, dict[str, Fixture]] = field(
        default_factory=lambda: {kind: {} for kind in FixtureKind}
    )
    broken: set[str] = field(default_factory=set)
    catalog: dict[tuple[str, str], CatalogObject] = field(default_factory=dict)
    classes: PodClasses = field(default_factory=PodClasses)
    recorded: Recorded | None = None
    whole: bool = True

    def find(self, kind: FixtureKind, place: PlacedValue, found: list[Diagnostic]) -> str | None:
        """Return the name at a place, if there is such a fixture."""
        name = place.text
        if name in self.of[kind]:
            return name
        if name in self.broken or not self.whole:
            return None
        known = self.of[kind]
        help_ = did_you_mean(name, known) or (f"{kind} here: {', '.join(known) or 'none'}",)
        title = f"there is no {kind.noun} `{name}` among the fixtures"
        found.append(Diagnostic(TestCode.UNKNOWN_FIXTURE, title, place.span, "unknown", help=help_))
        return None

    def with_changes(self, changes: Iterable[Change]) -> Fixtures:
        """Return the fixtures with some keys changed; fixtures that are `like` a changed one stay the
        same.
        """
        changed = replace(self, of={kind: dict(fixtures) for kind, fixtures in self.of.items()}, broken=set())
        for kind, name, key, value in changes:
            fixture = changed.of[kind][name]
            manifest = deepcopy(fixture.manifest)
            kind.edits[key](manifest, value)
            changed.of[kind][name] = replace(fixture, manifest=manifest)
        return changed

    def node(self, name: str) -> NodeFacts:
        """Build a node. Only for valid fixtures."""
        (node,) = read_values([self.of[FixtureKind.NODES][name].manifest]).nodes
        return NodeFacts.of(node)

    def pod(self, name: str) -> PodInfo:
        """Build a pod that is not bound. Only for valid fixtures."""
        (pod,) = read_values([self.admitted(self.of[FixtureKind.PODS][name])]).pods
        return PodInfo.of(pod)

    def admitted(self, fixture: Fixture) -> Manifest:
        """Return the manifest as the API server would store it: a pod has the priority of its class."""
        spec = fixture.manifest.get("spec")
        if fixture.kind is FixtureKind.NODES or not isinstance(spec, dict):
            return fixture.manifest
        return {**fixture.manifest, "spec": {**spec, **self.classes.rank_of(spec)}}

    def running(self, nodes: Iterable[str]) -> Iterator[Fixture]:
        """Yield the fixtures of pods that run on `nodes`."""
        wanted = set(nodes)
        return (fixture for fixture in self.of[FixtureKind.PODS].values() if fixture.on in wanted)

    def bound(self, nodes: Iterable[str]) -> Iterator[tuple[str, PodInfo]]:
        """Yield the pods that run on `nodes` with their names in cases. Only for valid fixtures."""
        for fixture in self.running(nodes):
            pod = self.pod(fixture.name).on(fixture.on)
            if fixture.count == 1:
                yield fixture.name, pod
                continue
            for at, name in enumerate(fixture.copies):
                yield name, pod.with_fields(name=f"{pod.name}-{at + 1}")
