"""HAMi's flags and its device configuration: what becomes of them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
import uvloop
from kdsl.app import Settings
from kdsl.base.errors import InvalidInputError
from kdsl.config.hami import DeviceProfile
from kdsl.extender.behaviours import BehaviourKind
from kdsl.extender.hami import flags
from kdsl.extender.hami.behaviour import HamiBehaviour
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.service import ExtenderOptions, ExtenderService
from kdsl.live.services import Host

from tests.cli.command_line import kdsl
from tests.extender.hami.life import rules
from tests.extender.hami.vendors import NVIDIA, Plugin
from tests.extender.hami.world import NODES, Cluster, Extender, Given, cluster, patched
from tests.extender.site import PLAIN, post

CONFIG = """\
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
  defaultMemory: 700
  defaultGPUNum: 2
vnpus:
  configs:
  - chipName: 910B3
    commonWord: Ascend910B3
    resourceName: huawei.com/Ascend910B3
    resourceMemoryName: huawei.com/Ascend910B3-memory
"""


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300), ("28s", 28), ("1m30s", 90), ("0", 0), ("250ms", 0.25), ("1.5h", 5400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert flags.duration(text) == seconds


@pytest.mark.parametrize("text", ["5", "m", "5x", "5m 3", "", "5m0", "1.2.3s", "9" * 400 + "h"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        flags.duration(text)


def test_a_node_policy_that_hami_would_take_for_binpack() -> None:
    result = kdsl("hami", "--device-config-file", "x.yaml", "--node-scheduler-policy", "bin-pack")
    assert result.exit_code == 2 and "'bin-pack' is not one of 'binpack', 'spread'" in result.stderr


def test_a_lease_without_a_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    result = kdsl("hami", "--device-config-file", "x.yaml", "--leader-elect", "true")
    assert result.exit_code == 2 and "needs --leader-elect-resource-namespace" in result.stderr


def test_a_card_policy_that_hami_would_ignore() -> None:
    assert flags.card_policies("numa,binpack") == "numa,binpack"
    result = kdsl("hami", "--device-config-file", "x.yaml", "--gpu-scheduler-policy", "numa,spred")
    assert result.exit_code == 2
    assert "there is no policy `spred`; did you mean `spread`?" in " ".join(result.stderr.split())


def test_addresses_and_labels() -> None:
    assert flags.address(":9395") == ("0.0.0.0", 9395)
    assert flags.address("127.0.0.1:443") == ("127.0.0.1", 443)
    assert flags.address("[::1]:443") == ("::1", 443)
    assert flags.node_labels("a=b, c/d=") == {"a": "b", "c/d": ""}
    assert flags.node_labels("") == {}
    for wrong in ("443", "host:port", "a:99999"):
        with pytest.raises(ValueError, match="is not like"):
            flags.address(wrong)
    with pytest.raises(ValueError, match="is not like"):
        flags.node_labels("a")


@pytest.mark.parametrize("text", ["", "nvidia: [", "unknown: {}\n"])
def test_a_device_configuration_that_cannot_be_used(text: str, tmp_path: Path) -> None:
    path = tmp_path / "device-config.yaml"
    path.write_text(text)
    sources = flags.DeviceSources(devices=path)
    with pytest.raises(InvalidInputError):
        sources._text()


def test_what_is_not_enabled_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "device-config.yaml"
    path.write_text(CONFIG)
    settings = {"nodePolicy": "spread", "cardPolicy": "binpack"}
    profile = DeviceProfile("mine", settings, has_devices_only=True, without=frozenset({"vnpus"}))
    text, package, _ = flags.DeviceSources(devices=path, profile=profile)._text()
    assert package == "device_config"
    assert "ascend" not in text and "import kubernetes.v1_36" in text
    assert text.endswith(
        """\
profile hami {
  scheduler "mine"
  queue v1_36.PrioritySort
  devices Nvidia
  set Devices.nodePolicy = "spread"
  set Devices.cardPolicy = "binpack"
}
"""
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


async def play_process(world: Cluster, folder: Path) -> None:
    """Run `kdsl hami` with the flags of HAMi's chart, and let a pod through."""
    config, kubeconfig = folder / "device-config.yaml", folder / "kubeconfig"
    config.write_text(CONFIG)
    kubeconfig.write_text(world.world.sandbox.kubeconfig)
    status = {"capacity": {"pods": "9"}, "allocatable": {"pods": "9"}}
    await world.post(NODES, {"metadata": {"name": "n1"}, "status": status})
    await Plugin(world, NVIDIA, "n1").register()
    ports = [_free_port(), _free_port()]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kdsl.cli.main", "hami",
        f"--http_bind=127.0.0.1:{ports[0]}", "--scheduler-name=hami-scheduler",
        f"--metrics-bind-address=127.0.0.1:{ports[1]}", "--node-scheduler-policy=binpack",
        "--gpu-scheduler-policy=spread", "--force-overwrite-default-scheduler=true",
        f"--device-config-file={config}", "--leader-elect=false", "--enable-ascend=true",
        "--enable-iluvatar=false", "--debug=false", "-v=4", f"--kubeconfig={kubeconfig}",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        pod = NVIDIA.pod("a", {"nvidia.com/gpumem": "700"})
        request = {"uid": "1", "kind": {"kind": "Pod"}, "namespace": "default", "object": pod}
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        for _ in range(400):
            try:
                response = (await post(ports[0], "/webhook", review)).json["response"]
            except (ConnectionError, KeyError):
                await asyncio.sleep(0.05)
            else:
                break
        made = await world.create(patched(pod, response))
        assert made["spec"]["schedulerName"] == "hami-scheduler"
        limits = made["spec"]["containers"][0]["resources"]["limits"]
        assert limits == {"nvidia.com/gpumem": "700", "nvidia.com/gpu": "2"}
        for _ in range(400):
            answer = (await post(ports[0], "/filter", {"Pod": made, "NodeNames": ["n1"]})).json
            if "FailedNodes" in answer:
                break
            await asyncio.sleep(0.05)
        assert answer["FailedNodes"] == {"n1": "NodeInsufficientDevice"}
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


def test_the_flags_of_the_chart(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster() as world:
            await play_process(world, tmp_path)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_the_behaviour_by_name_is_of_the_profile_that_is_given() -> None:
    async def run() -> None:
        async with cluster() as world:
            service = ExtenderService(ExtenderOptions("hami"))
            sources = Given(rules(), Settings(profile="life.nvidia"))
            instance = await world.world.start(service, sources=sources, serving=PLAIN, advises=True)
            assert instance.process.endpoints is not None
            request = {"uid": "1", "kind": {"kind": "Pod"}, "object": NVIDIA.pod("a")}
            review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
            answer = (await post(instance.process.endpoints.port, "/webhook", review)).json
            made = patched(NVIDIA.pod("a"), answer["response"])
            assert made["spec"]["schedulerName"] == "life-nvidia"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_a_changed_device_configuration_takes_effect(tmp_path: Path) -> None:
    path = tmp_path / "device-config.yaml"
    path.write_text(CONFIG)

    async def run() -> None:
        async with cluster() as world:
            made: list[HamiBehaviour] = []

            def make(host: Host) -> HamiBehaviour:
                made.append(HamiBehaviour(host, HamiOptions("mine")))
                return made[0]

            sources = flags.DeviceSources(devices=path, profile=DeviceProfile("mine", has_devices_only=True))
            service = ExtenderService(ExtenderOptions(), BehaviourKind(make))
            instance = await world.world.start(service, sources=sources, serving=PLAIN, advises=True)
            extender = Extender(instance, made[0])

            async def count() -> str:
                limits = {"nvidia.com/gpumem": "700"}
                pod = patched(NVIDIA.pod("a"), await extender.review(NVIDIA.pod("a", limits)))
                return str(pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])

            assert await count() == "2"
            path.write_text(CONFIG.replace("defaultGPUNum: 2", "defaultGPUNum: 3"))
            async with asyncio.timeout(20):
                while await count() != "3":
                    await asyncio.sleep(0.05)
            # A file that cannot be used changes nothing.
            path.write_text("nvidia: [")
            await asyncio.sleep(0.3)
            assert await count() == "3"
            await extender.hang_up()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_a_log_level_is_a_number() -> None:
    assert (flags.level("4"), flags.level("=4")) == (4, 4)
    with pytest.raises(ValueError, match="`x` is no log level such as 4"):
        flags.level("x")
