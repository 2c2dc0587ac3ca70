"""Actions of operators: two commands, kubectl, edits of running rules, and the signals that end the scheduler."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kdsl.hooks.context import PluginContext
from kdsl.reload import Reloaded, Sources
from kdsl.sandbox import Delay, Match

from tests.live.scenarios.world import PATIENCE, SERVING, SHORT_LEASE, World, get, kind, live, play
from tests.live.test_reloading import RULES, Mount

_COMMAND = "import sys; from kdsl.cli.main import main; sys.exit(main())"
KUBECTL = shutil.which("kubectl")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: "img:1"}]}
"""


def _rules(node: str) -> dict[str, str]:
    return {"mine.kdsl": RULES.format(node=node)}


async def _kubectl(world: World, *arguments: str, stdin: str = "") -> str:
    config = world.access().kubeconfig
    cache = world.folder / "cache"
    process = await asyncio.create_subprocess_exec(
        KUBECTL or "", "--kubeconfig", str(config), "--cache-dir", str(cache), *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(stdin.encode()), 20)
    assert process.returncode == 0, out.decode()
    return out.decode()


@asynccontextmanager
async def _command(world: World, rules: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `kdsl run`, as an operator does; what has not ended by then is killed."""
    config = world.access().kubeconfig
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _COMMAND, "run", "--kubeconfig", str(config), "--rules", str(rules),
        "--secure-port", "0", "--leader-elect-lease-duration", "3", "--leader-elect-renew-deadline", "2",
        "--leader-elect-retry-period", "0.5",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=dict(os.environ),
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")
def test_a_pod_applied_with_kubectl_is_bound_and_its_events_are_seen() -> None:
    async def scenario(world: World) -> None:
        await _kubectl(world, "apply", "-f", "-", stdin=POD)
        await world.until(lambda: world.events("Scheduled", "web"))
        assert "Successfully assigned default/web to n1" in await _kubectl(world, "get", "events")
        described = await _kubectl(world, "describe", "pod", "web")
        assert "Successfully assigned default/web to n1" in described
        assert "PodScheduled" in described and "default-scheduler" in described

    live(scenario)


def test_an_edited_rule_decides_the_next_pod_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    mount = Mount(tmp_path / "rules")
    mount.update(_rules("n1"))

    async def scenario(world: World) -> None:
        await world.nodes(2)
        sources = Sources(rules=(mount.folder,))
        instance = await world.start(sources=sources, serving=SERVING, lease=SHORT_LEASE)
        await world.until(lambda: instance.leads)
        await world.pod("a")
        await world.until(lambda: world.at("a") == "n1")
        mount.update(_rules("n2"))
        await world.until(lambda: world.events("RulesReloaded"))
        await world.pod("b")
        await world.until(lambda: world.at("b") == "n2")

        mount.update({"mine.kdsl": "predicate P { require node.nam == 1 }"})
        await world.until(lambda: world.events("RulesRefused", "kdsl"))
        await world.pod("c")
        await world.until(lambda: world.at("c") == "n2")
        assert instance.process.endpoints is not None
        metrics = await get(instance.process.endpoints.port, "/metrics", world.sandbox.token)
        assert b'kdsl_reloads_total{result="refused"} 1' in metrics.body
        assert b'kdsl_reloads_total{result="applied"} 1' in metrics.body

        (mount.folder / "mine.kdsl").unlink()
        await world.until(lambda: sum(e.get("count") or 1 for e in world.events("RulesRefused")) >= 2)
        await world.pod("d")
        await world.until(lambda: world.at("d") == "n2")

    play(scenario)


def test_rules_that_need_a_missing_right_are_refused_until_it_is_there(tmp_path: Path) -> None:
    mount = Mount(tmp_path / "rules")
    mount.update(_rules("n1"))
    reader = RULES.format(node="n2").replace("require", 'require !("x" in pod.namespaceLabels) &&', 1)

    async def scenario(world: World) -> None:
        await world.nodes(2)
        sources = Sources(rules=(mount.folder,))
        instance = await world.start(sources=sources, serving=SERVING, lease=SHORT_LEASE)
        await world.until(lambda: instance.leads)
        assert instance.process.endpoints is not None
        port = instance.process.endpoints.port
        faults = world.sandbox.faults
        faults.forbid("namespaces", "list")
        faults.forbid("namespaces", "watch")

        mount.update({"mine.kdsl": reader})
        await world.until(lambda: world.events("RulesRefused"))
        (event,) = world.events("RulesRefused")
        assert "the changed rules read namespaces, which cannot be watched: forbidden" in event["message"]
        await world.pod("a")
        await world.until(lambda: world.at("a") == "n1")
        assert (await get(port, "/readyz")).status == 200
        metrics = (await get(port, "/metrics", world.sandbox.token)).body
        assert b"kdsl_reload_is_refused 1" in metrics and b'{result="refused"} 1' in metrics

        # A change that needs nothing new is used at once, and the one that waits is dropped.
        mount.update(_rules("n2"))
        await world.until(lambda: world.events("RulesReloaded"))
        assert not instance.process.watches.coming
        await world.pod("b")
        await world.until(lambda: world.at("b") == "n2")

        # So is one that waits when a broken one follows.
        mount.update({"mine.kdsl": reader})
        await world.until(lambda: instance.process.watches.coming)
        mount.update({"mine.kdsl": "predicate P { require node.nam == 1 }"})
        await world.until(lambda: not instance.process.watches.coming)

        mount.update({"mine.kdsl": reader.replace("n2", "n1")})
        await world.until(lambda: instance.process.watches.coming)
        faults.permit("namespaces", "list")
        faults.permit("namespaces", "watch")
        await world.until(lambda: len(instance.process.watches.health) == 3)
        await world.pod("c")
        await world.until(lambda: world.at("c") == "n1")
        metrics = (await get(port, "/metrics", world.sandbox.token)).body
        assert b"kdsl_reload_is_refused 0" in metrics

    play(scenario)


def test_rules_that_need_less_end_the_wait_for_a_right(tmp_path: Path) -> None:
    mount = Mount(tmp_path / "rules")
    reader = RULES.format(node="n1").replace("require", 'require !("x" in pod.namespaceLabels) &&', 1)
    mount.update({"mine.kdsl": reader})

    async def scenario(world: World) -> None:
        world.sandbox.faults.forbid("namespaces", "list")
        world.sandbox.faults.forbid("namespaces", "watch")
        await world.node()
        await world.pod("a")
        instance = world.begin(sources=Sources(rules=(mount.folder,)))
        await world.until(lambda: hasattr(instance.process, "watches") and instance.process.watches.health)
        await world.until(lambda: any(each.error for each in instance.process.watches.health))
        mount.update(_rules("n1"))
        await world.until(lambda: world.bound("a"))

    play(scenario)


def test_a_rule_that_changes_while_the_rules_are_loaded_counts(tmp_path: Path) -> None:
    mount = Mount(tmp_path / "rules")
    mount.update(_rules("n1"))

    class Edited(Sources):
        def load(self, context: PluginContext) -> Reloaded:
            loaded = super().load(context)
            if mount.version == 1:
                mount.update(_rules("n2"))
            return loaded

    async def scenario(world: World) -> None:
        await world.nodes(2)
        instance = await world.start(sources=Edited(rules=(mount.folder,)), lease=SHORT_LEASE)
        await world.until(lambda: instance.leads and world.events("RulesReloaded"))
        await world.pod("a")
        await world.until(lambda: world.at("a") == "n2")

    play(scenario)


def test_s12_28_a_leader_that_is_killed_is_followed_and_one_that_is_ended_gives_its_lease_back(
    tmp_path: Path,
) -> None:
    mount = Mount(tmp_path / "rules")
    mount.update(_rules("n1"))

    def holder(world: World) -> str:
        lease = world.get("kdsl", kind("leases"), "kube-system") or {"spec": {}}
        return str(lease["spec"].get("holderIdentity", ""))

    async def killed(world: World) -> None:
        async with _command(world, mount.folder) as leader:
            await world.until(lambda: holder(world), 15)
            await world.pod("a")
            await world.until(lambda: world.bound("a"))
            follower = await world.start(lease=SHORT_LEASE)
            # The lease runs from before this moment, however long the process takes to end.
            end = world.now
            leader.kill()
            await leader.communicate()
        assert leader.returncode == -signal.SIGKILL
        await world.pod("b")
        await world.until(lambda: follower.leads and world.bound("b"), 6)
        assert world.now - end > 1.5
        await follower.stop()
        assert not holder(world)

    async def ended(world: World) -> None:
        async with _command(world, mount.folder) as leader:
            await world.until(lambda: holder(world), 15)
            leader.terminate()
            _, log = await asyncio.wait_for(leader.communicate(), 6)
        assert leader.returncode == 0, log.decode()
        assert not holder(world)

    async def scenario(world: World) -> None:
        await world.node()
        await killed(world)
        await ended(world)
        assert len(world.bindings("a")) == len(world.bindings("b")) == 1

    play(scenario)


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    mount = Mount(tmp_path / "rules")
    mount.update(_rules("n1"))

    async def scenario(world: World) -> None:
        hanging = world.sandbox.faults.always(Match("POST", "*/binding"), Delay(60))
        await world.node()
        await world.pod("a")
        async with _command(world, mount.folder) as process:
            await world.until(lambda: hanging.used, 15)
            process.terminate()
            assert process.stderr is not None
            async with asyncio.timeout(PATIENCE):
                while b"stopping" not in await process.stderr.readline():
                    pass
            # Of two that come together, the second says nothing new.
            await asyncio.sleep(0.5)
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode == 1

    play(scenario)
