"""Patches of all forms, and who owns what was applied."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.sandbox.formats.apply import merge_applied
from kdsl.sandbox.formats.json_patch import apply_json_patch, merge_json
from kdsl.sandbox.formats.strategic import merge_strategic
from kdsl.sandbox.model.errors import ApiError

VALUES = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text("abc", min_size=1, max_size=1), VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_is_idempotent(old: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_json(old, patch)
    assert merge_json(once, patch) == once


@given(OBJECTS, OBJECTS)
def test_without_lists_a_strategic_patch_is_a_merge_patch(old: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_strategic(old, patch) == merge_json(old, patch)


def conditions(*names: str) -> list[dict[str, str]]:
    return [{"type": name} for name in names]


@pytest.mark.parametrize(
    ("old", "patch", "order", "wanted"),
    [
        (("A", "B"), ("B",), None, ("A", "B")),
        (("A", "B"), ("C",), None, ("C", "A", "B")),
        (("A", "B"), ("C",), ("A", "C", "B"), ("A", "C", "B")),
        ((), ("A",), None, ("A",)),
    ],
)
def test_lists_with_a_key_merge_in_order(
    old: tuple[str, ...], patch: tuple[str, ...], order: tuple[str, ...] | None, wanted: tuple[str, ...]
) -> None:
    given_patch: dict[str, Any] = {"conditions": conditions(*patch)}
    if order:
        given_patch["$setElementOrder/conditions"] = conditions(*order)
    found = merge_strategic({"conditions": conditions(*old)}, given_patch)
    assert found["conditions"] == conditions(*wanted)


def test_directives_delete_and_replace() -> None:
    old = {"volumes": [{"name": "a"}, {"name": "b"}], "metadata": {"finalizers": ["x", "y"]}}
    assert merge_strategic(old, {"volumes": [{"name": "a", "$patch": "delete"}]})["volumes"] == [
        {"name": "b"}
    ]
    assert merge_strategic(old, {"volumes": [{"$patch": "replace"}, {"name": "c"}]})["volumes"] == [
        {"name": "c"}
    ]
    dropped = merge_strategic(old, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}})
    assert dropped["metadata"]["finalizers"] == ["y"]
    with pytest.raises(ApiError, match="does not contain declared merge key"):
        merge_strategic(old, {"volumes": [{"emptyDir": {}}]})


def test_lists_without_a_key_are_replaced() -> None:
    for name in ("taints", "tolerations"):
        assert merge_strategic({name: [{"key": "a"}, {"key": "b"}]}, {name: [{"key": "b"}]}) == {
            name: [{"key": "b"}]
        }


def test_json_patches() -> None:
    old = {"a": {"b": [1, 2]}, "x/y": 1}
    patch = [
        {"op": "test", "path": "/x~1y", "value": 1},
        {"op": "add", "path": "/a/b/-", "value": 3},
        {"op": "add", "path": "/a/b/0", "value": 0},
        {"op": "move", "from": "/x~1y", "path": "/z"},
        {"op": "copy", "from": "/a/b/0", "path": "/first"},
    ]
    assert apply_json_patch(old, patch) == {"a": {"b": [0, 1, 2, 3]}, "z": 1, "first": 0}
    assert old == {"a": {"b": [1, 2]}, "x/y": 1}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/none"},
        {"op": "add", "path": "/list/9", "value": 1},
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "odd", "path": "/a"},
        {"path": "/a"},
        {"op": "add", "path": "no-slash", "value": 1},
        {"op": "add", "path": "/list/-1", "value": 1},
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused(operation: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        apply_json_patch({"a": 1, "list": []}, [operation])
    assert caught.value.code == 422


def test_applied_fields_have_owners() -> None:
    owned: dict[str, frozenset[tuple[str, ...]]] = {}
    first = merge_applied({}, {"data": {"a": "1", "b": "1"}}, owned, "one", False)
    with pytest.raises(ApiError, match=r'conflict with "one": .data.a'):
        merge_applied(first, {"data": {"a": "2"}}, dict(owned), "two", False)
    forced = merge_applied(first, {"data": {"a": "2"}}, owned, "two", True)
    assert forced["data"] == {"a": "2", "b": "1"}
    dropped = merge_applied(forced, {"data": {"a": "2"}}, owned, "one", False)
    assert dropped["data"] == {"a": "2"}


def test_conflicts_are_listed_by_manager() -> None:
    owned: dict[str, frozenset[tuple[str, ...]]] = {}
    ports = [{"containerPort": 80, "name": "x"}]
    before = merge_applied({}, {"spec": {"ports": ports}}, owned, "one", False)
    before = merge_applied(before, {"data": {"a": "1", "b": "1"}}, owned, "two", False)
    changed = {"data": {"a": "2", "b": "2"}, "spec": {"ports": [{"containerPort": 80, "name": "y"}]}}
    with pytest.raises(ApiError) as refused:
        merge_applied(before, changed, owned, "three", False)
    assert str(refused.value) == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .spec.ports[containerPort=80].name\n'
        'conflicts with "two":\n- .data.a\n- .data.b'
    )
