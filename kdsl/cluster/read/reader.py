"""Files of Kubernetes objects to validated and completed API structs.

The commands, the simulator and the tests read clusters here.

Every error becomes a diagnostic. An object with an error is left out, all others stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, BinaryIO, Final, TypeAlias

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean, has_errors
from kdsl.base.paths import Path, path_text
from kdsl.cluster.api.kinds import KINDS, KNOWN_KINDS, CatalogObject, KubeObject
from kdsl.cluster.api.objects import Node, Pod, PodResourceClaimStatus
from kdsl.cluster.read.claim_templates import CLAIM, TEMPLATE, ClaimTemplates, with_claims
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.decode import decode_fitting
from kdsl.cluster.read.defaults import with_defaults
from kdsl.cluster.read.documents import Document, read_documents
from kdsl.cluster.read.files import read_files
from kdsl.cluster.read.listed import objects_in
from kdsl.cluster.read.pod_classes import PRIORITY_CLASS, PodClasses, with_fields
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.unknown_fields import UnknownField, unknown_fields
from kdsl.cluster.read.validate import validate

Manifest: TypeAlias = dict[str, Any]
"""An object as plain JSON values, as it is written."""


# Requests of a pod that rules cannot read yet: a decision without them may be wrong, so they are reported.
_UNREAD_POD_FIELDS: Final[tuple[Path, ...]] = (("spec", "schedulingGroup"), ("spec", "workloadRef"))


MAX_UNKNOWN_FIELDS: Final = 50
"""The maximum number of unknown fields that are listed one by one."""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The valid objects in input order, the number of skipped ones by kind, and the diagnostics.

    `sources` are the objects as they were written, if the reader was asked to keep them.
    """

    objects: tuple[KubeObject, ...]
    unread: tuple[tuple[str, int], ...]
    diagnostics: tuple[Diagnostic, ...]
    sources: tuple[Manifest, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(one for one in self.objects if isinstance(one, Node))

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(one for one in self.objects if isinstance(one, Pod))

    @property
    def catalog(self) -> tuple[CatalogObject, ...]:
        """The objects that are neither nodes nor pods."""
        return tuple(one for one in self.objects if not isinstance(one, Node | Pod))


def read_objects(
    paths: Sequence[str | FilePath],
    stdin: BinaryIO | None = None,
    *,
    keeps_sources: bool = False,
    classes: PodClasses | None = None,
) -> ReadResult:
    """Read YAML, JSON and JSON lines from files, folders and `-` (`stdin`), packed with gzip or not.

    Lists as `kubectl get -o json` writes them count as their items. Pods may name `classes`, to which the
    reader adds those of the input. No input raises an exception.
    """
    reader = _Reader(keeps_sources, classes=classes or PodClasses())
    for file in read_files(paths, stdin, reader.found):
        for document in read_documents(file.name, file.data, reader.found):
            reader.take(document)
    return reader.result()


def read_all(
    documents: Iterable[Document], *, keeps_sources: bool = False, classes: PodClasses | None = None
) -> ReadResult:
    """Read documents that were taken from inputs of another form, with the checks of `read_objects`."""
    reader = _Reader(keeps_sources, classes=classes or PodClasses())
    for document in documents:
        reader.take(document)
    return reader.result()


def read_values(
    values: Iterable[object], name: str = "<values>", classes: PodClasses | None = None
) -> ReadResult:
    """Read objects given as plain JSON values, with the checks of `read_objects`."""
    documents = (Document(f"{name}#{number}", value) for number, value in enumerate(values, start=1))
    return read_all(documents, classes=classes)


@dataclass(slots=True)
class _Occurrences:
    """An unknown field, the collector for its object, and the number of its occurrences."""

    field: UnknownField
    problems: Problems
    count: int = 0


@dataclass(slots=True)
class _Reader:
    keeps_sources: bool = False
    sources: list[Manifest] = field(default_factory=list)
    found: list[Diagnostic] = field(default_factory=list)
    objects: list[KubeObject] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    unread_fields: Counter[Path] = field(default_factory=Counter)
    unknown_fields: dict[tuple[str, Path], _Occurrences] = field(default_factory=dict)
    more_unknown_fields: int = 0
    places: dict[tuple[str, str, str], str] = field(default_factory=dict)
    templates: ClaimTemplates = field(default_factory=ClaimTemplates)
    classes: PodClasses = field(default_factory=PodClasses)

    def take(self, document: Document) -> None:
        problems = Problems(self.found, document.where)
        for raw, path, kind in objects_in(document.value, problems):
            self._take_object(raw, kind, problems.inside(path))

    def _take_object(self, raw: dict[str, object], kind: tuple[str, str], problems: Problems) -> None:
        into = KINDS.get(kind)
        if kind == TEMPLATE:
            if not self.templates.add(raw):
                title = "a template needs a name and the spec of a claim (`spec.spec`)"
                problems.add(InputCode.MISSING, (), title)
            return
        if kind == PRIORITY_CLASS:
            self.classes.add(raw, problems)
            return
        if into is None:
            self._skip(kind, problems)
            return
        before = len(self.found)
        decoded = decode_fitting(raw, into, problems)
        if decoded is None:
            return
        for unknown in unknown_fields(raw, into) if not problems.removed else ():
            self._count_unknown(kind[1], unknown, problems)
        validate(decoded, problems)
        if has_errors(self.found[before:]):
            return
        api_object = with_defaults(decoded)
        meta = api_object.metadata
        key = (kind[1], meta.namespace, meta.name)
        if key in self.places:
            title = f"a second {kind[1]} is named `{'/'.join(filter(None, key[1:]))}`"
            problems.add(InputCode.DUPLICATE_OBJECT, (), title, f"the first one is {self.places[key]}")
            return
        self.places[key] = problems.where
        if isinstance(decoded, Pod) and isinstance(spec := raw.get("spec"), dict):
            self.classes.note(len(self.objects), spec)
        self.objects.append(api_object)
        if self.keeps_sources:
            # Items of typed lists may have no kind.
            self.sources.append({"apiVersion": kind[0], "kind": kind[1], **raw})
        if isinstance(api_object, Pod):
            self.unread_fields.update(path for path in _UNREAD_POD_FIELDS if _has(raw, path))

    def _count_unknown(self, kind: str, unknown: UnknownField, problems: Problems) -> None:
        """Count an unknown field; among equal paths of several objects only the first is shown."""
        place = tuple(step for step in unknown.path if isinstance(step, str))
        if (kind, place) in self.unknown_fields or len(self.unknown_fields) < MAX_UNKNOWN_FIELDS:
            self.unknown_fields.setdefault((kind, place), _Occurrences(unknown, problems)).count += 1
        else:
            self.more_unknown_fields += 1

    def _skip(self, kind: tuple[str, str], problems: Problems) -> None:
        if kind in KNOWN_KINDS:
            self.unread[kind[1]] += 1
            return
        if _is_custom(kind[0]):
            self.unread[f"{kind[1]} ({kind[0]})"] += 1
            return
        known = (*KINDS, *KNOWN_KINDS)
        versions = sorted(version for version, name in known if name == kind[1])
        help = (
            (f"its apiVersion is {' or '.join(versions)}",)
            if versions
            else did_you_mean(kind[1], (name for version, name in known if version == kind[0]))
        )
        title = f"objects of kind `{kind[1]}` in `{kind[0]}` are not known and are passed over"
        problems.add(InputCode.UNKNOWN_KIND, (), title, *help, severity=Severity.WARNING)

    def _create_claims(self) -> None:
        """Create the claims of devices that pods lack, from templates."""
        for at, pod in enumerate(tuple(self.objects)):
            if not isinstance(pod, Pod) or not pod.spec.resource_claims:
                continue
            created: list[PodResourceClaimStatus] = []
            for status, claim in self.templates.claims_for(pod):
                where = Problems(self.found, f"claim `{status.name}` of pod `{pod.metadata.name}`")
                self._take_object(claim, CLAIM, where)
                created.append(status)
            self.objects[at] = with_claims(pod, created)
            if created and self.keeps_sources:
                self.sources[at] = _with_statuses(self.sources[at], created)

    def _set_priorities(self) -> None:
        for at, fields in self.classes.priorities():
            pod = self.objects[at]
            assert isinstance(pod, Pod)
            self.objects[at] = with_fields(pod, fields)
            if self.keeps_sources:
                source = self.sources[at]
                self.sources[at] = {**source, "spec": {**source["spec"], **fields}}
        self.found.extend(self.classes.problems())

    def result(self) -> ReadResult:
        self._create_claims()
        self._set_priorities()
        for path, count in self.unread_fields.items():
            pods = "1 pod has" if count == 1 else f"{count} pods have"
            title = f"{pods} `{path_text(path)}`, which no rule can read yet"
            self.found.append(Diagnostic(InputCode.NOT_READ_YET, title, severity=Severity.WARNING))
        for (kind_name, _), seen in self.unknown_fields.items():
            more = "" if seen.count == 1 else f" (seen {seen.count:,} times)"
            title = f"no {kind_name} has a field `{seen.field.name}` here: it is passed over{more}"
            help = did_you_mean(seen.field.name, seen.field.known)
            seen.problems.add(
                InputCode.UNKNOWN_FIELD, seen.field.path, title, *help, severity=Severity.WARNING
            )
        if self.more_unknown_fields:
            title = f"there are {self.more_unknown_fields:,} more fields that no object has"
            self.found.append(Diagnostic(InputCode.UNKNOWN_FIELD, title, severity=Severity.WARNING))
        unread = tuple(sorted(self.unread.items()))
        return ReadResult(tuple(self.objects), unread, tuple(self.found), tuple(self.sources))


def _with_statuses(source: Manifest, created: Iterable[PodResourceClaimStatus]) -> Manifest:
    status = source.get("status") or {}
    known = status.get("resourceClaimStatuses") or []
    entries = [{"name": one.name, "resourceClaimName": one.resource_claim_name} for one in created]
    return {**source, "status": {**status, "resourceClaimStatuses": [*known, *entries]}}


def _is_custom(version: str) -> bool:
    """Return whether an apiVersion is that of a custom resource.

    Built-in groups have no dot, or end in `k8s.io`.
    """
    group = version.rpartition("/")[0]
    return "." in group and not group.endswith("k8s.io")


def _has(raw: object, path: Path) -> bool:
    """Return whether `path`, which includes all items of a list, leads to a non-empty value."""
    if not path:
        return bool(raw)
    if isinstance(raw, list):
        return any(_has(item, path) for item in raw if isinstance(item, dict))
    return isinstance(raw, dict) and _has(raw.get(str(path[0])), path[1:])
