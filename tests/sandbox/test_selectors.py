"""Label and field selectors: the same texts as the reference takes, against a plain reading of them."""

from __future__ import annotations

import re

import pytest
from kdsl.sandbox.formats.label_selectors import parse_labels
from kdsl.sandbox.formats.selectors import Selection, matches_object, read_selection
from kdsl.sandbox.model.errors import ApiError
from kdsl.sandbox.model.resources import NODES, PODS, named
from kdsl.sandbox.model.store import Version


def version(labels: dict[str, str], node: str = "", phase: str = "Pending") -> Version:
    spec = {"containers": [], **({"nodeName": node} if node else {})}
    metadata = {"name": "a", "namespace": "x", "labels": labels}
    return Version(("x", "a"), 1, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


@pytest.mark.parametrize(
    ("text", "labels", "wanted"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (b, c),d notin (e)", {"a": "c"}, True),
        ("a in (b,c)", {}, False),
        ("a notin (b)", {"a": "b"}, False),
        ("a=", {"a": ""}, True),
        ("a in (b,)", {"a": ""}, True),
        ("a in ()", {"a": ""}, True),
        ("a>1,a<3", {"a": "2"}, True),
        ("a>2", {"a": "2"}, False),
        ("a<2", {"a": "x"}, False),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("example.com/a-b=c.d", {"example.com/a-b": "c.d"}, True),
    ],
)
def test_labels(text: str, labels: dict[str, str], wanted: bool) -> None:
    assert Selection(labels=parse_labels(text)).matches(version(labels)) is wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a,", "found '', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_labels_that_cannot_be_read(text: str, wanted: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_labels(text)
    assert (caught.value.code, str(caught.value)) == (400, wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a b/c=d", "found 'b/c'"),
        ("/c=d", '<nil>: Invalid value: "/c"'),
        ("a=-", 'values[0][a]: Invalid value: "-"'),
    ],
)
def test_keys_and_values_are_those_of_labels(text: str, wanted: str) -> None:
    with pytest.raises(ApiError, match=re.escape(f"unable to parse requirement: {wanted}")):
        parse_labels(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("spec.nodeName=n", True),
        ("spec.nodeName=", False),
        ("spec.nodeName!=n", False),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("metadata.name=a,metadata.namespace=x", True),
        ("metadata.name=b", False),
    ],
)
def test_fields_of_pods(text: str, wanted: bool) -> None:
    selection = read_selection(PODS, "", {"fieldSelector": text})
    assert selection.matches(version({}, "n", "Running")) is wanted


def test_fields_are_those_of_the_resource() -> None:
    events = named("events", "events.k8s.io")
    body = {"metadata": {"name": "e"}, "involvedObject": {"name": "a"}}
    event = Version(("x", "e"), 1, body)
    assert read_selection(events, "", {"fieldSelector": "regarding.name=a"}).matches(event)
    cordoned = Version(("", "n"), 1, {"metadata": {"name": "n"}, "spec": {"unschedulable": True}})
    assert read_selection(NODES, "", {"fieldSelector": "spec.unschedulable=true"}).matches(cordoned)
    with pytest.raises(ApiError, match="field label not supported"):
        read_selection(NODES, "", {"fieldSelector": "spec.nodeName=x"})


def test_selectors_of_objects() -> None:
    expressions = [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "DoesNotExist"}]
    selector = {"matchLabels": {"x": "y"}, "matchExpressions": expressions}
    assert matches_object(selector, {"a": "b", "x": "y"})
    assert not matches_object(selector, {"a": "b", "x": "y", "c": ""})
    assert not matches_object(None, {})
    assert matches_object({}, {})
