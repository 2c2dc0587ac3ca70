"""A field that an object leaves out is empty: no text, 0, no entries. `defaults` sets the defaults of the API."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from kdsl.cluster.api import objects, storage_objects, workload_objects
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_volumes import PodVolume

PARTS = sorted(
    {
        part
        for module in (objects, storage_objects, workload_objects)
        for part in vars(module).values()
        if isinstance(part, type) and issubclass(part, msgspec.Struct) and part is not msgspec.Struct
    },
    key=lambda part: part.__name__,
)


def absent(part: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that an object may leave out, with their values."""
    for field in msgspec.structs.fields(part):
        if field.default is not msgspec.NODEFAULT:
            yield field.name, field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            yield field.name, field.default_factory()


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_a_field_that_is_absent_is_nothing(part: type[msgspec.Struct]) -> None:
    for name, value in absent(part):
        # A part that is absent is one of which all is absent.
        assert value == (type(value)() if isinstance(value, msgspec.Struct) else value) and (
            not value or isinstance(value, msgspec.Struct)
        ), name


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (
            PodInfo("p"),
            {
                "name": "p",
                "namespace": "default",
                "scheduler_name": "default-scheduler",
                "preemption_policy": "PreemptLowerPriority",
            },
        ),
        (NodeFacts("n"), {"name": "n"}),
        (PodVolume("v", "csi"), {"name": "v", "kind": "csi"}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_nobody_says_of_a_thing_is_nothing(thing: Any, said: dict[str, object]) -> None:
    names = [
        field.name
        for field in (msgspec.structs if isinstance(thing, msgspec.Struct) else dataclasses).fields(thing)
    ]
    values = {name: getattr(thing, name) for name in names}
    assert {name: value for name, value in values.items() if _is_said(value)} == said


def _is_said(value: object) -> bool:
    return bool(value) and value != type(value)()
