"""HAMi's metrics: the names and labels that dashboards know, and the numbers behind them."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path

from kdsl.extender.hami.metrics import ABOUT, BUILD_INFO, LEGACY
from kdsl.obs.gauges import exposition
from prometheus_client.parser import text_string_to_metric_families

from tests.extender.hami.life import Life, play
from tests.extender.hami.vendors import MIG, NVIDIA

DOCS = Path(__file__).parents[3] / "docs"
Samples = dict[str, list[tuple[dict[str, str], float]]]


async def scraped(life: Life) -> Samples:
    text = exposition(await life.extender.behaviour.metrics()).decode()
    return {
        family.name: [(dict(sample.labels), sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


def test_cards_and_what_is_taken_of_them() -> None:
    async def scenario(life: Life) -> None:
        await life.filter(
            await life.admitted(NVIDIA.pod("a", {**NVIDIA.limits, "nvidia.com/gpucores": "30"}))
        )
        found = await scraped(life)
        base = {
            "node": "n1", "device_uuid": "n1-g0", "device_index": "0", "device_type": "NVIDIA", "zone": "vGPU",
        }  # fmt: skip
        mib = 1 << 20
        assert found["hami_gpu_memory_limit_bytes"] == [(base, 8192 * mib)]
        assert found["hami_gpu_core_limit_ratio"] == [(base, 100)]
        assert found["hami_gpu_memory_allocated_bytes"] == [({**base, "device_cores": "100"}, 5000 * mib)]
        assert found["hami_gpu_shared_count"] == [(base, 1)]
        assert found["hami_gpu_core_allocated_ratio"] == [(base, 30)]
        assert found["hami_node_gpu_memory_allocated_ratio"] == [(base, 5000 / 8192)]
        overview = {**base, "device_cores": "100", "device_memory_limit": "8192"}
        assert found["hami_node_gpu_overview"] == [(overview, 5000 * mib)]
        of_pod = {
            "namespace": "default", "node": "n1", "pod": "a", "container_index": "0",
            "device_uuid": "n1-g0", "zone": "vGPU",
        }  # fmt: skip
        assert found["hami_vgpu_memory_allocated_bytes"] == [(of_pod, 5000 * mib)]
        assert found["hami_vgpu_core_allocated_ratio"] == [(of_pod, 30)]
        assert set(found) == {*ABOUT, BUILD_INFO}

    play("nvidia", scenario, registers=True)


def test_quotas() -> None:
    async def scenario(life: Life) -> None:
        path = "/api/v1/namespaces/default/resourcequotas"
        hard = {"limits.nvidia.com/gpumem": "8000", "limits.cpu": "9"}
        await life.cluster.post(path, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        await life.filter(await life.admitted(NVIDIA.pod("a")))
        name = {"namespace": "default", "quota_name": "nvidia.com/gpumem", "zone": "vGPU"}
        while not (found := await scraped(life))["hami_resource_quota_limit"]:
            await asyncio.sleep(0.01)
        assert found["hami_resource_quota_limit"] == [(name, 8000)]
        assert found["hami_resource_quota_used"] == [({**name, "limit": "8000"}, 5000)]

    play("nvidia", scenario, registers=True)


def test_instances_that_a_device_plugin_has_made() -> None:
    async def scenario(life: Life) -> None:
        await life.filter(await life.admitted(MIG.pod("a")))
        assert (await scraped(life))["hami_node_gpu_mig_instance_info"] == []
        written = json.loads((await life.cluster.pod("a"))["metadata"]["annotations"][MIG.mig])
        written[0] |= {"migUUID": "MIG-1", "gpuInstanceID": 3, "computeInstanceID": 0}
        stamp = {"hami.io/vgpu-time": "9999999999", MIG.mig: json.dumps(written)}
        await life.cluster.annotate("a", stamp)
        await life.cluster.seen_by(life.extender)
        ((labels, value),) = (await scraped(life))["hami_node_gpu_mig_instance_info"]
        assert value == 1
        assert labels["mig_uuid"] == "MIG-1" and labels["gpu_instance_id"] == "3"
        assert (labels["profile"], labels["placement_start"], labels["placement_size"]) == (
            "2g.20gb",
            "0",
            "2",
        )

    play("mig", scenario, registers=True)


def test_old_names_are_there_where_they_are_asked_for() -> None:
    async def scenario(life: Life) -> None:
        await life.filter(await life.admitted(NVIDIA.pod("a")))
        found = await scraped(life)
        assert {name for name, _ in LEGACY.values()} <= set(found)
        ((labels, value),) = found["GPUDeviceMemoryAllocated"]
        assert labels == {
            "nodeid": "n1", "deviceuuid": "n1-g0", "deviceidx": "0", "devicetype": "NVIDIA",
            "devicecores": "100", "zone": "vGPU",
        }  # fmt: skip
        assert value == found["hami_gpu_memory_allocated_bytes"][0][1]

    play("nvidia", scenario, registers=True, has_legacy_metrics=True)


def test_they_are_on_a_port_of_their_own() -> None:
    async def scenario(life: Life) -> None:
        await life.cluster.seen_by(life.extender)
        port = life.extender.behaviour.metrics_port
        assert port is not None
        while not port.port:
            await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{port.port}/metrics"
        answer = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read())
        assert b"hami_gpu_memory_limit_bytes{" in answer

    play("nvidia", scenario, registers=True, metrics=("127.0.0.1", 0))


def test_every_metric_is_documented() -> None:
    page = (DOCS / "hami.md").read_text(encoding="utf-8")
    assert [name for name in (*ABOUT, BUILD_INFO) if f"`{name}`" not in page] == []
    assert [old for old, _ in LEGACY.values() if f"`{old}`" not in page] == []
