"""The views file: read strictly, inherited, with binding times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kdsl.check.model.types import INT, STRING, BindingTime, Type, map_of
from kdsl.check.views.view import Views, load_views, read_views, time_of
from kdsl.cluster.api import objects as api


def _views(**types: Any) -> Views:
    return read_views({"minor": "0", "scopes": {"score": {"pod": "Pod"}}, "types": {"Pod": {}, **types}})


def test_the_shipped_views() -> None:
    views = load_views()
    assert views.minor == "1.36"
    assert views is load_views("1.36")
    assert views.types["Node"].fields["labels"].type == map_of(STRING, STRING)
    assert views.types["Node"].fields["podCount"].reads == {"node.usage"}
    assert views.functions["taint"].result == Type("Taint")
    assert views.scopes["queue"]["pod"] == Type("QueuedPod")


def test_inheritance_keeps_who_declared_a_field() -> None:
    queued = load_views().types["QueuedPod"]
    assert queued.fields["priority"].view == "Pod"
    assert queued.fields["queuedAt"].view == "QueuedPod"
    assert queued.methods["tolerates"].view == "Pod"
    assert load_views().is_a("QueuedPod", "Pod")
    assert not load_views().is_a("Pod", "QueuedPod")
    assert not load_views().is_a("int", "Pod")


def test_binding_times() -> None:
    assert time_of(frozenset()) is BindingTime.STATIC
    assert time_of(frozenset({"pod.name"})) is BindingTime.POD
    assert time_of(frozenset({"pod.name", "node.static"})) is BindingTime.NODE
    assert time_of(frozenset({"node.static", "node.usage"})) is BindingTime.USAGE
    assert time_of(frozenset({"cluster.images", "pod.name"})) is BindingTime.CLUSTER
    assert time_of(frozenset({"queue"})) is BindingTime.QUEUE


def test_fields_read_what_they_say() -> None:
    views = _views(Image={"fields": {"size": {"type": "int", "reads": "-"}}})
    field = views.types["Image"].fields["size"]
    assert (field.type, field.reads, field.optional) == (INT, frozenset(), False)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"A": {"field": {}}}, "A: unknown keys"),
        ({"A": {"fields": {"x": {"type": "int"}}}}, r"A\.x: missing keys \['reads'\]"),
        ({"A": {"fields": {"x": {"type": "int", "reads": "moon"}}}}, r"A\.x: unknown reads 'moon'"),
        ({"A": {"fields": {"x": {"type": "Moon", "reads": "-"}}}}, r"unknown types \['Moon'\]"),
        ({"A": {"fields": {"x": {"type": "list", "reads": "-"}}}}, "not a type"),
        ({"A": {"extends": "B"}, "B": {}}, "A: extends 'B'"),
        ({"A": {"methods": {"m": {"args": [], "result": "int"}}}}, r"A\.m: missing keys"),
        ({"A": []}, "A: not a mapping"),
    ],
)
def test_mistakes(types: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _views(**types)


@pytest.mark.parametrize(("view", "struct"), [("Pod", api.Pod), ("Node", api.Node)])
def test_objects_of_the_api_have_the_field_of_every_path(view: str, struct: type[msgspec.Struct]) -> None:
    paths = [path.split(".")[1:] for path in load_views().paths if path.startswith(f"{view}.")]
    assert ["spec"] in paths and ["metadata", "labels"] in paths
    for path in paths:
        fields: Any = struct
        for name in path:
            known = {each.encode_name: each.type for each in msgspec.structs.fields(fields)}
            assert name in known, path
            fields = known[name]
