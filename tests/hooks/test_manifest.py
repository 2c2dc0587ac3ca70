"""Manifests: what they declare, and everything that can be wrong with one."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source
from kdsl.check.model.types import INT, STRING, Type, list_of
from kdsl.check.views.view import load_views
from kdsl.hooks.manifest import NO_MANIFEST, Manifest, manifest_schema, parse_manifest

HEAD = "apiVersion: kdsl.dev/v1alpha1\nkind: PluginManifest\n"
FUNCTION = "functions: {f: {call: 'm:f', args: [string], result: int, ATTRIBUTES}}\n"
FIELD = "fields: {Node: {rack: {call: 'm:f', type: string, ATTRIBUTES}}}\n"


def parse(text: str) -> tuple[Manifest, tuple[Diagnostic, ...]]:
    return parse_manifest(Source("kdsl-plugin.yaml", HEAD + text), load_views())


def test_what_is_declared() -> None:
    attributes = "reads: [pod.labels], pure: true, cost: 3, doc: what"
    manifest, found = parse(
        f"doc: all\nrequires: '>=0.1'\n{FUNCTION.replace('ATTRIBUTES', attributes)}"
        "fields: {Node: {racks: {call: 'm:g', type: list(string)}}}\n"
    )
    assert found == ()
    assert (manifest.doc, manifest.requires) == ("all", ">=0.1")
    function, field = manifest.brought
    assert (function.name, function.view, function.args, function.result) == ("f", "", (STRING,), INT)
    assert (function.reads, function.is_declared, function.cost) == ({"pod.labels"}, True, 3)
    assert (function.target, function.doc) == ("m:f", "what")
    assert (field.name, field.view, field.args) == ("racks", "Node", (Type("Node"),))
    assert (field.result, field.reads, field.is_declared) == (list_of(STRING), {"undeclared"}, False)


@pytest.mark.parametrize("attributes", ["pure: true", "reads: []", "pure: false, reads: []"])
def test_purity_and_reads_are_declared_together_or_not_at_all(attributes: str) -> None:
    (function,) = parse(FUNCTION.replace("ATTRIBUTES", attributes))[0].brought
    assert (function.is_declared, function.reads) == (False, {"undeclared"})


DECLARED = "pure: true, reads: "


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("functons: {}\n", "unknown key `functons`"),
        ("fields: {Taint: {}}\n", "unknown key `fields.Taint`"),
        ("functions: {f: {args: [], result: int}}\n", "the key `functions.f.call` is missing"),
        ("functions: {f: {call: f, args: [], result: int}}\n", "`functions.f.call` does not have the form that is needed here"),
        ("requires: new\n", "`requires`: `new` is no requirement: write one such as `>=1.2,<2`"),
        (FUNCTION.replace("int", "Int"), "`functions.f.result`: `Int` cannot stand in `Int` here"),
        (FUNCTION.replace("int", "Node"), "`functions.f.result`: `Node` cannot stand in `Node` here"),
        (FUNCTION.replace("int", "'list('"), "`functions.f.result`: `list(` is no type"),
        (FUNCTION.replace("int", "'map(double, int)'"), "`functions.f.result`: `double` cannot stand in `map(double, int)` here"),
        (FUNCTION.replace("[string]", "[T]"), "`functions.f.args[0]`: `'T` cannot stand in `T` here"),
        (FUNCTION.replace("ATTRIBUTES", DECLARED + "[pod.lables]"), "`functions.f.reads[0]`: nothing is called `pod.lables` that could be read"),
        (FUNCTION.replace("ATTRIBUTES", DECLARED + "[queue]"), "`functions.f.reads[0]`: nothing is called `queue` that could be read"),
        (FUNCTION.replace("ATTRIBUTES", DECLARED + "[undeclared]"), "`functions.f.reads[0]`: nothing is called `undeclared` that could be read"),
        (
            FUNCTION.replace("[string]", "[Node]").replace("ATTRIBUTES", DECLARED + "[pod.labels]"),
            "`functions.f.reads`: it takes a `Node` but declares no reads of it",
        ),
        (FIELD.replace("rack", "labels"), "`fields.Node.labels`: `Node` has a `labels` already"),
        (FIELD.replace("ATTRIBUTES", DECLARED + "[pod.labels]"), "`fields.Node.rack.reads`: a field of `Node` cannot read `pod.labels`"),
        (FIELD.replace("Node", "Pod").replace("ATTRIBUTES", DECLARED + "[node.static]"), "`fields.Pod.rack.reads`: a field of `Pod` cannot read `node.static`"),
    ],
)  # fmt: skip
def test_mistakes(text: str, title: str) -> None:
    manifest, (found, *_) = parse(text.replace(", ATTRIBUTES", ""))
    assert manifest is NO_MANIFEST
    assert (found.code, found.title) == ("K1017", title)
    assert found.span is not None


def test_a_text_that_is_no_mapping() -> None:
    manifest, (found,) = parse_manifest(Source("x.yaml", "- 1\n"), load_views())
    assert (manifest, found.code) == (NO_MANIFEST, "K1017")
    assert found.title == "`x.yaml` is no manifest: it must be one mapping"


def test_the_schema_is_one() -> None:
    schema = json.loads(json.dumps(manifest_schema()))
    Draft202012Validator.check_schema(schema)
