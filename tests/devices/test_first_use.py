"""Devices are compiled when a pod asks for their cards first, and at once where no pod may wait for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kdsl.base.clock import ManualClock
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.waiting import WaitingPods
from kdsl.eval.scalar import Closure
from kdsl.hooks.context import NO_ANNOTATIONS, PluginContext
from kdsl.plan.devices.fitting import FitProgram
from kdsl.plan.devices.plugin import compile_devices
from kdsl.plan.devices.section import DeviceSource
from kdsl.profiles import devices_in_use
from kdsl.reload import Sources

from tests.devices.farm import Farm, node, pod, rules

RULES = """kdsl 1
package farm
import devices.mthreads
import devices.nvidia
import kubernetes.v1_36 as kubernetes

profile pack extends kubernetes.default {
  scheduler "pack"
  devices nvidia.Nvidia, mthreads.Mthreads
}
"""
BOTH = ["NVIDIA", "Mthreads"]


class Silent:
    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        return closure


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds whose `fit` was compiled."""
    found: list[str] = []
    compile_fit: Callable[..., None] = FitProgram.__init__

    def noted(self: FitProgram, source: DeviceSource) -> None:
        found.append(source.kind)
        compile_fit(self, source)

    monkeypatch.setattr(FitProgram, "__init__", noted)
    return found


def test_a_pod_compiles_the_cards_that_it_requests(tmp_path: Path, kinds: list[str]) -> None:
    farm = Farm(rules(tmp_path, RULES), "pack", node("n"))
    assert farm.place(pod("plain", gpus=0)).node == "n" and kinds == []
    for name in ("one", "two"):
        assert farm.place(pod(name)).node == "n" and kinds == ["NVIDIA"]


def test_a_process_compiles_all_when_it_loads_rules(tmp_path: Path, kinds: list[str]) -> None:
    farm = Farm(rules(tmp_path, RULES), "pack")
    context = PluginContext(MemoryBinder(farm.cluster), ManualClock(), WaitingPods())
    made = Sources(rules=(tmp_path,), profiles=("farm.pack",)).load(context).scheduler
    assert kinds == BOTH
    (plugin,) = devices_in_use(made.rules, made.settings, {"pack"})
    assert kinds == BOTH * 2
    for program in plugin.inventories.programs.values():
        assert vars(program).keys() > {"inventory", "admit", "order", "lock", "quota_names"}


def test_a_probe_sees_all_devices(tmp_path: Path, kinds: list[str]) -> None:
    found = rules(tmp_path, RULES)
    profile = found.profiles["farm.pack"]
    compile_devices(found, profile, NO_ANNOTATIONS, ManualClock(), probe=Silent())
    assert kinds == BOTH
