"""Reads the `fixtures` of a test file: written, from manifests, or from a recorded cycle."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Label, did_you_mean, has_errors
from kdsl.base.errors import reason_of
from kdsl.base.span import Span
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.read.claim_templates import TEMPLATE
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.documents import read_documents
from kdsl.cluster.read.files import MAX_BYTES
from kdsl.cluster.read.pod_classes import PRIORITY_CLASS
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.testing.codes import TestCode
from kdsl.testing.document import PlacedValue
from kdsl.testing.fixtures import Fixture, FixtureKind, Fixtures
from kdsl.testing.manifest import (
    Manifest,
    blank_node,
    blank_pod,
    manifest_of,
    objects_in,
)
from kdsl.testing.patterns import files_matching
from kdsl.testing.recorded import (
    Recorded,
    cycle_help,
    find_cycle,
    is_cycle,
    is_record,
    name_objects,
    no_cycle,
)

_INSTEAD: Final = {
    TEMPLATE: "write the ResourceClaim that a controller makes of it",
}
"""The cure for an object in a test file from which others would be made, by its API version and kind."""


def read_fixtures(place: PlacedValue | None, folder: Path, found: list[Diagnostic]) -> Fixtures:
    """Read the `fixtures` of a test file, whose shape is right; `folder` is the folder of its manifests."""
    fixtures = Fixtures()
    if place is None:
        return fixtures
    before, sources = len(found), place.get("from")
    manifests: list[tuple[Manifest, Span]] = []
    for pattern in sources.each() if sources is not None else ():
        if is_cycle(pattern.text):
            _add_recorded(pattern, folder, fixtures, found)
        else:
            manifests += ((each, pattern.span) for each in _manifests(pattern, folder, found))
    objects = place.get("objects")
    others = [(each.value, each.span) for each in objects.each()] if objects is not None else []
    for manifest, span in (*manifests, *others):
        assert isinstance(manifest, dict)
        if _is_class(manifest):
            _add_object(manifest, span, fixtures, found)
    for manifest, span in manifests:
        if not _is_class(manifest):
            _add(manifest, span, fixtures, found)
    fixtures.whole = not has_errors(found[before:])
    for kind in FixtureKind:
        written = place.get(kind)
        if written is not None:
            _Resolver(kind, written, fixtures, found).run()
    for manifest, span in others:
        assert isinstance(manifest, dict)
        if not _is_class(manifest):
            _add_object(manifest, span, fixtures, found)
    _check_hosts(fixtures, found)
    _check_copies(fixtures, found)
    return fixtures


class _Resolver:
    """Resolves the fixtures of one kind, each after the fixture that it is `like`."""

    def __init__(
        self, kind: FixtureKind, written: PlacedValue, fixtures: Fixtures, found: list[Diagnostic]
    ) -> None:
        self._kind = kind
        self._written = written
        self._fixtures = fixtures
        self._found = found
        self._running: list[str] = []

    def run(self) -> None:
        for name in self._written.keys:
            if name in self._fixtures.of[self._kind]:
                title = f"{self._kind.noun} `{name}` also comes from a manifest"
                span = self._written.keys[name]
                help_ = ("give this one another name",)
                self._found.append(
                    Diagnostic(TestCode.DUPLICATE_NAME, title, span, "named again", help=help_)
                )
        for name in self._written.keys:
            self._resolve(name)

    def _resolve(self, name: str) -> Fixture | None:
        known = self._fixtures.of[self._kind]
        if name in known:
            return known[name]
        place = self._written.get(name)
        if place is None or name in self._fixtures.broken:
            return None
        self._running.append(name)
        manifest = self._base(name, place)
        self._running.pop()
        if manifest is None:
            self._fixtures.broken.add(name)
            return None
        assert isinstance(place.value, dict)
        manifest_of(manifest, self._kind.edits, place.value)
        fixture = self._finished(name, place, manifest)
        known[name] = fixture
        check_fixture(self._fixtures, fixture, self._found)
        return fixture

    def _finished(self, name: str, place: PlacedValue, manifest: Manifest) -> Fixture:
        on, count = place.get("on"), place.get("count")
        return Fixture(
            self._kind,
            name,
            manifest,
            self._written.keys[name],
            place,
            on=on.text if on else "",
            count=int(count.text) if count else 1,
        )

    def _base(self, name: str, place: PlacedValue) -> Manifest | None:
        """Return the manifest to edit: blank, or a copy of the one of the `like` fixture."""
        like = place.get("like")
        if like is None:
            return blank_node(name) if self._kind is FixtureKind.NODES else blank_pod(name)
        other = like.text
        if other in self._running:
            path = " → ".join(f"`{each}`" for each in [*self._running[self._running.index(other) :], other])
            title = f"{self._kind} are like one another: {path}"
            self._found.append(Diagnostic(TestCode.BAD_FIXTURE, title, like.span, "closes the circle"))
            return None
        base = self._resolve(other)
        if base is None:
            if other not in self._written.keys:
                names = dict.fromkeys((*self._written.keys, *self._fixtures.of[self._kind]))
                # Those that wait for this one would close a circle.
                known = [each for each in names if each not in self._running]
                title = f"there is no {self._kind.noun} `{other}` among the fixtures"
                help_ = did_you_mean(other, known) or (f"{self._kind} here: {', '.join(known) or 'none'}",)
                self._found.append(
                    Diagnostic(TestCode.UNKNOWN_FIXTURE, title, like.span, "unknown", help=help_)
                )
            return None
        manifest = deepcopy(base.manifest)
        manifest.setdefault("metadata", {})["name"] = name
        manifest["metadata"].pop("uid", None)
        return manifest


def check_fixture(
    fixtures: Fixtures, fixture: Fixture, found: list[Diagnostic], at: Span | None = None
) -> bool:
    """Report the errors in the object of a fixture, at the place `at` or at the key that caused them."""
    problems = read_values([fixtures.admitted(fixture)], fixture.name).diagnostics
    for problem in problems:
        where = problem.where.partition(": ")[2]
        span = at or _origin(fixture, where)
        if problem.code == InputCode.INCOMPLETE and _is_known(problem, span, found):
            continue
        note = f"in the object: {where}" if where else f"in {fixture.kind.noun} `{fixture.name}`"
        found.append(
            replace(
                problem,
                code=TestCode.BAD_FIXTURE,
                span=span,
                label="in this fixture",
                where="",
                notes=(*problem.notes, note),
            )
        )
    return not has_errors(problems)


def _is_known(problem: Diagnostic, span: Span, found: list[Diagnostic]) -> bool:
    """Return whether a warning was given at this place: a record may have it of thousands of pods."""
    return any((one.title, one.help, one.span) == (problem.title, problem.help, span) for one in found)


def _origin(fixture: Fixture, where: str) -> Span:
    """Return the key of the short form that an object's field came from, or the name of the fixture."""
    if fixture.place is None:
        return fixture.span
    for key, place in fixture.place.items():
        probe: Manifest = {"spec": {"containers": [{}]}, "metadata": {}, "status": {}}
        edit = fixture.kind.edits.get(key)
        if edit is None or place.value is None:
            continue
        edit(probe, deepcopy(place.value))
        if _reaches(probe, where):
            inner = [last for last in place.keys if where.endswith((f".{last}", f'["{last}"]'))]
            return place.children[inner[0]].span if inner else place.span
    return fixture.span


def _reaches(value: Any, where: str) -> bool:
    """Return whether a manifest holds a leaf at the path, or above or below it."""
    return any(
        path.startswith(where) or where.startswith(path) for path in _leaves(value, "") if path and where
    )


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, below in value.items():
            plain = key.replace("-", "").replace("_", "").isalnum()
            step = (f".{key}" if path else key) if plain else f'["{key}"]'
            yield from _leaves(below, path + step)
    elif isinstance(value, list) and value:
        for at, below in enumerate(value):
            yield from _leaves(below, f"{path}[{at}]")
    elif not isinstance(value, dict):
        yield path


def _check_hosts(fixtures: Fixtures, found: list[Diagnostic]) -> None:
    """Report pods on nodes that do not exist."""
    for fixture in fixtures.of[FixtureKind.PODS].values():
        place = fixture.place.get("on") if fixture.place is not None else None
        if place is not None:
            fixtures.find(FixtureKind.NODES, place, found)


def _check_copies(fixtures: Fixtures, found: list[Diagnostic]) -> None:
    """Report pods that are named like a copy of another."""
    pods = fixtures.of[FixtureKind.PODS]
    for fixture in pods.values():
        for name in fixture.copies if fixture.count > 1 else ():
            if name in pods and pods[name].count == 1:
                title = f"a copy of pod `{fixture.name}` is also called `{name}`"
                copies = (Label(fixture.span, f"its copies are {fixture.named}"),)
                found.append(
                    Diagnostic(
                        TestCode.DUPLICATE_NAME,
                        title,
                        pods[name].span,
                        "named again",
                        secondary=copies,
                        help=("give this one another name",),
                    )
                )


def _manifests(pattern: PlacedValue, folder: Path, found: list[Diagnostic]) -> Iterator[Manifest]:
    """Yield the objects of the files that a glob matches."""
    glob = pattern.text
    refused: list[OSError] = []
    try:
        files = files_matching(folder, glob, refused)
    except (ValueError, OSError) as error:
        title = f"`{glob}` is not a valid pattern: {error}".lower()
        found.append(Diagnostic(TestCode.NO_MANIFEST, title, pattern.span, "relative to this file"))
        return
    found += [_unreadable(Path(str(error.filename)), error, pattern) for error in refused]
    if not files and not refused:
        title = f"no file matches `{glob}`"
        help_ = cycle_help(glob) if "#" in glob else ()
        found.append(
            Diagnostic(TestCode.NO_MANIFEST, title, pattern.span, "relative to this file", help=help_)
        )
    for file in files:
        try:
            data = file.read(MAX_BYTES)
        except OSError as error:
            found.append(_unreadable(file.path, error, pattern))
            continue
        for document in read_documents(str(file.path), data, found):
            if is_record(document.value):
                found.append(no_cycle(file.path, pattern))
                break
            yield from objects_in(document.value)


def _unreadable(path: Path, error: OSError, pattern: PlacedValue) -> Diagnostic:
    title = f"cannot read `{path}`: {reason_of(error)}"
    return Diagnostic(TestCode.UNREADABLE, title, pattern.span, "matched by this")


def _add_recorded(pattern: PlacedValue, folder: Path, fixtures: Fixtures, found: list[Diagnostic]) -> None:
    """Add the cluster and the pod of a recorded cycle."""
    cycle = find_cycle(pattern, folder, found)
    if cycle is None:
        return
    if fixtures.recorded is not None:
        title = "a test file holds one recorded cycle"
        found.append(Diagnostic(TestCode.DUPLICATE_NAME, title, pattern.span, "the second one"))
        return
    for name, manifest in name_objects(cycle):
        _add(manifest, pattern.span, fixtures, found, name)
    fixtures.recorded = Recorded(name, cycle)


def _add(manifest: Manifest, span: Span, fixtures: Fixtures, found: list[Diagnostic], name: str = "") -> None:
    if manifest["kind"] in (Node.KIND, Pod.KIND):
        _add_manifest(manifest, span, fixtures, found, name)
    else:
        _add_object(manifest, span, fixtures, found)


def _is_class(manifest: Manifest) -> bool:
    """Return whether an object is a PriorityClass, which pods read after it may name."""
    return (manifest.get("apiVersion"), manifest.get("kind")) == PRIORITY_CLASS


def _add_object(manifest: Manifest, span: Span, fixtures: Fixtures, found: list[Diagnostic]) -> None:
    """Add an object of the catalog, and report the errors in it."""
    read = read_values([manifest], "object", fixtures.classes)
    for problem in read.diagnostics:
        where = problem.where.partition(": ")[2]
        notes = (f"in the object: {where}",) if where else ()
        found.append(
            replace(problem, code=TestCode.BAD_FIXTURE, span=span, label="this object", where="", notes=notes)
        )
    instead = _INSTEAD.get((str(manifest.get("apiVersion")), str(manifest["kind"])))
    for kind in (each for each, _ in read.unread) if instead is None else (manifest["kind"],):
        title = f"objects of kind `{kind}` are not read"
        help_ = () if instead is None else (instead,)
        found.append(
            Diagnostic(TestCode.BAD_FIXTURE, title, span, "nothing comes of this object", help=help_)
        )
    for thing in read.objects:
        if isinstance(thing, Node | Pod):
            help_ = (
                f"write it under `{FixtureKind.NODES if isinstance(thing, Node) else FixtureKind.PODS}`",
            )
            title = f"`objects` holds a {thing.KIND.lower()}"
            found.append(Diagnostic(TestCode.BAD_FIXTURE, title, span, "not here", help=help_))
            continue
        key = (thing.KIND, key_of(thing))
        if key in fixtures.catalog:
            title = f"a second {thing.KIND} is named `{key[1]}`"
            found.append(Diagnostic(TestCode.DUPLICATE_NAME, title, span, "named again"))
        fixtures.catalog[key] = thing


def _add_manifest(
    manifest: Manifest, span: Span, fixtures: Fixtures, found: list[Diagnostic], name: str
) -> None:
    """Add a node or a pod under its own name if `name` is not given."""
    kind = FixtureKind.NODES if manifest["kind"] == Node.KIND else FixtureKind.PODS
    metadata = manifest.get("metadata")
    name = name or (str(metadata.get("name", "")) if isinstance(metadata, dict) else "")
    read = read_values([manifest], name)
    on = ""
    if kind is FixtureKind.PODS:
        on = next((pod.spec.node_name for pod in read.objects if isinstance(pod, Pod)), "")
    fixture = Fixture(kind, name, manifest, span, on=on)
    if not check_fixture(fixtures, fixture, found):
        return
    if name in fixtures.of[kind]:
        title = f"the manifests hold a second {kind.noun} `{name}`"
        found.append(Diagnostic(TestCode.DUPLICATE_NAME, title, span, "among these"))
        return
    fixtures.of[kind][name] = fixture
