"""Devices in profiles: what is checked, shown and compared; and the example."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import check_rules
from kdsl.check.analyses.changes import compare_profiles
from kdsl.report.profile import profile_document, profile_text

from tests.cli.command_line import kdsl
from tests.devices.farm import RULES, rules

ROOT = Path(__file__).parents[2]
EXAMPLE = (
    "simulate",
    "--cluster", "examples/gpu-sharing/cluster.yaml",
    "--pods", "examples/gpu-sharing/pods.yaml",
)  # fmt: skip

DEVICES = """
device Mine extends nvidia.Nvidia {
  order by device.index
}

device Other {
  kind "OTHER"
  record "hami.io/vgpu-" + "devices-allocated"
  inventory for id in ["a"] {
    set id = id
    set slots = 1
    set memory = 1
    set cores = 1
  }
  request { set count = 1 }
  charge {
    set memory = 1
    set cores = 1
  }
  choose first
}

"""
BROKEN = {
    "devices nvidia.Nvidea": "unknown device `nvidia.Nvidea`",
    "devices nvidia.Nvidia, nvidia.Nvidia": "the profile has device `Nvidia` already",
    "devices nvidia.Nvidia, Mine": "devices `nvidia.Nvidia` and `Mine` have the same kind `NVIDIA`",
    "devices Mine, Other": "devices `Mine` and `Other` have the same record `hami.io/vgpu-devices-allocated`",
    'devices nvidia.Nvidia set Devices.nodePolcy = "spread"': "`Devices` have no setting `nodePolcy`",
    "devices nvidia.Nvidia set Devices.weight = 0": "`Devices.weight` must be written as a number of 1",
    "devices nvidia.Nvidia set Devices.weight = 1 + 1": "`Devices.weight` must be written as a number of 1",
    'devices nvidia.Nvidia set Devices.askedNodes = "some"': "`Devices.askedNodes` must be one of",
    'devices nvidia.Nvidia set Devices.nodePolicy = "spreadd"': "`Devices.nodePolicy` must be one of",
    "set Devices.weight = 2": "the profile has no rule `Devices`",
}


@pytest.mark.parametrize("statements", BROKEN)
def test_mistakes(tmp_path: Path, statements: str) -> None:
    header = RULES.partition("profile")[0]
    body = statements.replace(" set ", "\n  set ")
    (tmp_path / "p.kdsl").write_text(
        f'{header}{DEVICES}profile p extends kubernetes.default {{\n  scheduler "p"\n  {body}\n}}\n'
    )
    found = [each.title for each in check_rules([tmp_path]).diagnostics]
    assert len(found) == 1 and found[0].startswith(BROKEN[statements]), found


def test_show_and_compare(tmp_path: Path) -> None:
    profiles = rules(tmp_path).profiles
    pack, spread = profiles["farm.pack"], profiles["farm.spread"]
    text = profile_text(spread)
    assert "  devices devices.nvidia.Nvidia" in text
    assert '  set Devices.cardPolicy = "spread"' in text
    assert 'set NodeResourcesFit.ignoredResources = ["nvidia.com/gpu"' in text
    document = profile_document(spread)
    assert document["deviceSettings"] == {
        "nodePolicy": "spread", "cardPolicy": "spread", "slotWeight": 1, "coreWeight": 1, "memoryWeight": 1,
        "weight": 1000, "askedNodes": "all",
    }  # fmt: skip
    changes = {(each.what, each.before, each.after) for each in compare_profiles(pack, spread)}
    assert ("setting Devices.cardPolicy", '"binpack"', '"spread"') in changes
    assert ("setting Devices.nodePolicy", "", '"spread"') in changes
    plain = profiles["kubernetes.v1_36.default"]
    assert ("devices", "", "devices.nvidia.Nvidia") in {
        (each.what, each.before, each.after) for each in compare_profiles(plain, pack)
    }


def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "examples" / "gpu-sharing" / "README.md").read_text(encoding="utf-8")
    shown = kdsl(*EXAMPLE, "--show", "cards")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout in page
