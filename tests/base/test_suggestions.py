"""Suggestions: the known name that a misspelt one means."""

from __future__ import annotations

import pytest
from kdsl.base.diagnostic import did_you_mean, nearest, suggest
from kdsl.base.quantity import meant_quantity
from kdsl.base.span import Source, Span


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("alocatable", ["allocatable", "annotations"], "allocatable"),
        ("nmae", ["name", "node"], "name"),
        ("CHEK", ["check", "eval"], "check"),
        # Two or three letters in common are not enough.
        ("age", ["images", "labels"], None),
        ("len", ["flatten", "size"], None),
        # A qualifier that both have says nothing.
        ("plugins.Racks", ["plugins.Extender", "plugins.VolumeBinding"], None),
        ("plugins.Rakcs", ["plugins.Racks"], "plugins.Racks"),
        ("kubernetes.missing", ["kubernetes.default"], None),
        ("kubernetes.v1_37", ["kubernetes.v1_36"], "kubernetes.v1_36"),
        # A qualifier that is missing, or misspelt.
        ("PrioritySrt", ["kubernetes.PrioritySort"], "kubernetes.PrioritySort"),
        ("kubernets.default", ["kubernetes.default"], "kubernetes.default"),
    ],
)
def test_nearest(name: str, known: list[str], meant: str | None) -> None:
    assert nearest(name, known) == meant
    assert did_you_mean(name, known) == (() if meant is None else (f"did you mean `{meant}`?",))


@pytest.mark.parametrize(
    ("name", "known", "is_fix"),
    [
        ("fro", "for", True),
        ("fr", "for", True),
        ("lte", "LET", True),
        # Perhaps another word.
        ("foo", "for", False),
        ("cpu", "gpu", False),
        ("resources", "deviceResources", False),
    ],
)
def test_only_a_slip_has_a_fix(name: str, known: str, is_fix: bool) -> None:
    lines, fixes = suggest(Span(Source("f", name), 0, len(name)), name, [known])
    said = [fix.title for fix in fixes] if is_fix else list(lines)
    assert said == [f"did you mean `{known}`?"] and bool(fixes) is is_fix


@pytest.mark.parametrize(
    ("text", "meant"),
    [("4GiB", "4Gi"), ("4GB", "4G"), ("4Gi", "4Gi"), ("500m", "500m"), ("1.5gib", "1.5Gi"), ("4x", "")],
)
def test_meant_quantity(text: str, meant: str) -> None:
    assert meant_quantity(text) == meant
