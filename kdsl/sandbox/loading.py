"""Puts the objects of a cluster file into a sandbox before it serves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean
from kdsl.base.paths import path_text
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.documents import Document, read_documents
from kdsl.cluster.read.files import read_files
from kdsl.cluster.read.listed import objects_in
from kdsl.cluster.read.problems import Problems
from kdsl.sandbox.formats.decoding import Complaints, clean
from kdsl.sandbox.model.errors import ApiError, Json
from kdsl.sandbox.model.resources import BY_KIND, NAMESPACES, Resource
from kdsl.sandbox.model.schema import schema_of
from kdsl.sandbox.requests.call import SandboxState
from kdsl.sandbox.requests.creating import complete
from kdsl.sandbox.rules.defaults import apply_defaults

_FIRST = ("Namespace", "PriorityClass", "StorageClass")
_REFUSED: Final = "correct it: an API server refuses it with these words"
_INDEX: Final = re.compile(r"\[[0-9]+\]")


def load(world: SandboxState, paths: Iterable[str | Path], found: list[Diagnostic]) -> int:
    """Read files and folders of objects into a world; return the number of objects.

    Objects that cannot be read, are rejected or are of a kind without a resource are skipped and added to
    `found`; so are fields that the API does not have. Namespaces that objects name are created. Statuses are
    kept, unlike those of posted objects: a bound pod may be running.
    """
    count = 0
    left_out = _LeftOut(found)
    objects = [item for document in _documents(paths, found) for item in _objects(document, found)]
    objects.sort(key=lambda item: item[1].get("kind") not in _FIRST)
    for where, value in objects:
        try:
            count += _take(world, value, where, left_out)
        except ApiError as error:
            Problems(found, where).add(InputCode.VALUE, (), str(error), _REFUSED)
    left_out.report()
    return count


@dataclass(slots=True)
class _LeftOut:
    """Kinds and fields that a sandbox does not have, each with its first place and the number of places."""

    found: list[Diagnostic]
    seen: dict[tuple[InputCode, str], tuple[str, tuple[str, ...], int]] = field(default_factory=dict)

    def note(self, code: InputCode, title: str, where: str, help: tuple[str, ...] = ()) -> None:
        first, lines, count = self.seen.get((code, title), (where, help, 0))
        self.seen[code, title] = first, lines, count + 1

    def report(self) -> None:
        for (code, title), (where, help, count) in self.seen.items():
            more = "" if count == 1 else f" (seen {count:,} times)"
            self.found.append(
                Diagnostic(code, f"{title}{more}", severity=Severity.WARNING, where=where, help=help)
            )


def _documents(paths: Iterable[str | Path], found: list[Diagnostic]) -> Iterator[Document]:
    for file in read_files(list(paths), None, found):
        yield from read_documents(file.name, file.data, found)


def _objects(document: Document, found: list[Diagnostic]) -> Iterator[tuple[str, Json]]:
    for raw, path, (version, kind) in objects_in(document.value, Problems(found, document.where)):
        place = path_text(path)
        where = f"{document.where}: {place}" if place else document.where
        yield where, {**raw, "apiVersion": version, "kind": kind}


def _take(world: SandboxState, value: Json, where: str, left_out: _LeftOut) -> int:
    version, kind = str(value.get("apiVersion", "")), str(value.get("kind", ""))
    group = version.rpartition("/")[0]
    resource = BY_KIND.get((group, kind))
    if resource is None:
        near = did_you_mean(kind, (name for of, name in BY_KIND if of == group))
        title = f"objects of kind `{kind}` in `{version}` are left out: the sandbox does not serve them"
        left_out.note(InputCode.UNKNOWN_KIND, title, where, near)
        return 0
    complaints = Complaints()
    body = clean(value, schema_of(resource), complaints, resource.api_version)
    for path in complaints.unknown_fields:
        title = f"no {kind} has a field `{_INDEX.sub('[]', path)}`: it is left out"
        left_out.note(InputCode.UNKNOWN_FIELD, title, where)
    body.pop("kind", None)
    body.pop("apiVersion", None)
    metadata = body.setdefault("metadata", {})
    metadata.pop("resourceVersion", None)
    namespace = metadata.get("namespace") or "default" if resource.is_namespaced else ""
    key = (namespace, metadata.get("name", ""))
    if resource is NAMESPACES and world.store.get(resource, key) is not None:
        return 0
    if namespace and world.store.get(NAMESPACES, ("", namespace)) is None:
        _store(world, NAMESPACES, "", {"metadata": {"name": namespace}})
    _store(world, resource, namespace, body)
    return 1


def _store(world: SandboxState, resource: Resource, namespace: str, body: Json) -> None:
    status: Any = body.get("status")
    uid = body["metadata"].get("uid")
    given = _take_computed(resource, body)
    complete(world, resource, namespace, body)
    body.get("spec", {}).update(given)
    if uid:
        body["metadata"]["uid"] = uid
    if status:
        body["status"] = {**body.get("status", {}), **status}
        apply_defaults(resource, body)
    world.store.write(resource, (namespace, body["metadata"]["name"]), body)


def _take_computed(resource: Resource, body: Json) -> Json:
    """Remove and return the fields that admission would compute: the values of the file win."""
    spec = body.get("spec", {})
    names = ("priority", "preemptionPolicy") if resource.plural == "pods" else ()
    return {name: spec.pop(name) for name in names if name in spec}
