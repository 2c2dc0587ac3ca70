"""Tables, which `kubectl get` prints, and objects reduced to their metadata."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from kdsl.base.yaml_text import read_data_file
from kdsl.sandbox.formats.pod_printer import pod_conditions
from kdsl.sandbox.formats.printers import CELLS, age
from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.events_form import from_core, is_converted
from kdsl.sandbox.model.resources import PODS, Resource
from kdsl.sandbox.model.store import Version
from kdsl.sandbox.requests.call import AnswerForm, SandboxState

_COLUMNS: Final = Path(__file__).with_name("columns.yaml")


def partial(resource: Resource, version: Version, api_version: str) -> Json:
    """Return an object with its metadata only."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{api_version}",
        "metadata": version.body()["metadata"],
    }


def table(
    world: SandboxState,
    resource: Resource,
    versions: list[Version],
    form: AnswerForm,
    include: str,
    number: str,
) -> Json:
    """Return versions as a Table; `include` names the parts of the objects in the rows."""
    now = world.chance.now()
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": {"resourceVersion": number},
        "columnDefinitions": columns(resource.collection),
        "rows": [_row(resource, version, form, include, now) for version in versions],
    }


def _row(resource: Resource, version: Version, form: AnswerForm, include: str, now: datetime) -> Json:
    body = version.body()
    shown: Json | None = None
    if include == "Object":
        kept = from_core(body) if is_converted(resource) else body
        shown = {"kind": resource.kind, "apiVersion": resource.api_version, **kept}
    elif include != "None":
        shown = partial(resource, version, form.version)
    cells = CELLS.get(resource.collection)
    made = body["metadata"].get("creationTimestamp", "")
    found: list[Any] = cells(body, now) if cells else [body["metadata"]["name"], age(made, now)]
    conditions = pod_conditions(body) if resource is PODS else []
    return {"cells": found, **({"conditions": conditions} if conditions else {}), "object": shown}


@cache
def columns(collection: str) -> list[Json]:
    """Return the column definitions of a collection's Tables."""
    data: Json = read_data_file(_COLUMNS)
    listed: list[Json] = data[collection if collection in data else "other"]
    return [
        {
            "name": column["name"],
            "type": column.get("type", "string"),
            "format": column.get("format", ""),
            "description": _described(column["description"], data["shared"]),
            "priority": 1 if column.get("wide") else 0,
        }
        for column in listed
    ]


def _described(text: str, shared: Json) -> str:
    return str(shared[text[1:]]) if text.startswith("@") else text
