"""The least that makes each diagnostic about an input: what it says is tested where the input is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.base.span import Source
from kdsl.cluster.read.reader import read_objects
from kdsl.config.configuration import read_configuration
from kdsl.lang.loader import load_sources
from kdsl.sim.workload import read_openb_trace

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: CONTAINERS}\n"
CONFIG = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("K1103", "apiVersion: v1\nkind: Node\nmetadata: {name: a, name: b}\n"),
        ("K1109", POD.replace("CONTAINERS", "[{name: c, image: i, ports: [{containerPort: 65536}]}]")),
        ("K1110", "apiVersion: v1\nkind: Node\nmetadata: {}\n"),
        ("K1112", POD.replace("CONTAINERS", "[{name: c, image: i}, {name: c, image: i}]")),
    ],
)
def test_objects(tmp_path: Path, code: str, text: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert [each.code for each in read_objects([str(tmp_path / "x.yaml")], None).diagnostics] == [code]


def test_traces(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli\nn,many\n")
    (tmp_path / "pods.csv").write_text("name\np\n")
    _, found = read_openb_trace((str(tmp_path / "nodes.csv"),), (str(tmp_path / "pods.csv"),))
    assert "K1113" in [each.code for each in found]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("K1132", "kind: KdslConfiguration\n"),
        ("K1133", f"{CONFIG}parallelism: many\n"),
        ("K1135", f"{CONFIG}profile: a\nprofiles: [b]\n"),
        ("K1136", f"{CONFIG}profiles: [a, a]\n"),
    ],
)
def test_configurations(code: str, text: str) -> None:
    assert [each.code for each in read_configuration(Source("x.yaml", text)).diagnostics] == [code]


def test_rules() -> None:
    text = 'kdsl 1\npackage a\npredicate P { require true else "x" }\npredicate P { require true else "x" }\n'
    assert [each.code for each in load_sources([Source("a.kdsl", text)]).diagnostics] == ["K0353"]
