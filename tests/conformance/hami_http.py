"""Runs the HAMi vectors through `/webhook`, `/filter` and `/bind` of the extender, against the sandbox.

A step is a pod that is made as in a cluster: the webhook patches it, the API server takes it, filter chooses a
node and writes annotations, bind locks the node and binds, and the node's device plugin, which is played, gives
the lock back. Compared is what HAMi's own answers state: what is admitted, the reasons of nodes, the chosen
node, the scores that its event tells, and the annotations of the pod. Before a pod is bound it is given what
HAMi gave it, so the next step starts from HAMi's state.

Requests are not compared: they are not told over HTTP; what becomes of them is. Where HAMi's filter turns away
a pod that its webhook would not have let in, for a quota, the webhook is asked once more as of another namespace.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvloop
from kdsl.app import Settings, check_rules
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.devices.pods import DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.extender.hami.options import HamiOptions
from kdsl.plan.devices.plugin import BIND_PHASE, BIND_TIME, CHOSEN_AT, CHOSEN_NODE
from kdsl.plan.devices.review import OVER_QUOTA
from kdsl.sandbox.formats.json_patch import apply_json_patch

from tests.conformance.hami import STATED, Json, admitted_of, normalised, unpadded
from tests.conformance.tally import differences, not_compared
from tests.devices.best import best_of
from tests.extender.hami.world import NODES, Cluster, Extender, cluster, patched

LOCKS = ("hami.io/mutex.lock", "cambricon.com/dsmlu.lock")
POLICIES = ("binpack", "spread")
ORDER = (
    "/spec/schedulerName",
    "/spec/initContainers",
    "/spec/containers",
    "/spec/runtimeClassName",
    "/metadata",
)
"""The order of the operations of a patch, by what their paths begin with."""
_STAMPED = re.compile(r"1[0-9]{9}([0-9]{3}|[0-9]{6}|[0-9]{9})?", re.ASCII)
_SCORES = re.compile(r"find fit node\((.*)\), [0-9]+ nodes not fit, [0-9]+ nodes fit\((.*)\)")


@cache
def rules() -> RuleSet:
    """Return the shipped rules with a profile for each pair of policies that the vectors have as defaults."""
    profiles = [
        f"""profile {node}_{card} extends profiles.hami {{
  scheduler "{node}-{card}"
  set Devices.nodePolicy = "{node}"
  set Devices.cardPolicy = "{card}"
}}
"""
        for node in POLICIES
        for card in POLICIES
    ]
    with tempfile.TemporaryDirectory(prefix="kdsl-vectors-") as folder:
        file = Path(folder) / "vectors.kdsl"
        file.write_text("kdsl 1\npackage vectors\n\nimport devices.profiles\n\n" + "\n".join(profiles))
        checked = check_rules([Path(folder)])
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


async def run_vectors(vectors: Iterable[Json]) -> AsyncIterator[tuple[str, str, list[str]]]:
    """Yield the family and name of each step, and how the extender's answer differs from HAMi's."""

    def policies(vector: Json) -> tuple[str, str]:
        return vector["node_policy"], vector["gpu_policy"]

    async with cluster() as world:
        for defaults, group in groupby(sorted(vectors, key=policies), policies):
            async with _extender(world, *defaults) as extender:
                for vector in group:
                    try:
                        async for name, problems in Played(world, extender, vector).steps():
                            yield vector["family"], name, problems
                    except Exception as cause:  # noqa: BLE001 - the others are run all the same
                        yield vector["family"], vector["id"], [f"raised {type(cause).__name__}: {cause}"]
                        await _clear(world, extender)


@asynccontextmanager
async def _extender(world: Cluster, node: str, card: str) -> AsyncIterator[Extender]:
    settings = Settings(profile=f"vectors.{node}_{card}")
    extender = await world.extender(rules(), settings, HamiOptions(f"{node}-{card}"))
    try:
        yield extender
    finally:
        await extender.stop()


class Played:
    """One scenario."""

    def __init__(self, world: Cluster, extender: Extender, vector: Json) -> None:
        self._world, self._extender, self._vector = world, extender, vector
        self._default = Policy(vector["node_policy"], vector["gpu_policy"])
        self._names = [node["metadata"]["name"] for node in vector["nodes"]]
        self._scheduler = f"{self._default.node}-{self._default.device}"

    async def steps(self) -> AsyncIterator[tuple[str, list[str]]]:
        """Play it; yield how each step differs."""
        await self._set_up()
        found: list[tuple[str, list[str]]] = []
        expected = self._vector["expected"]["steps"]
        for written, stated in zip(self._vector["pods"], expected, strict=True):
            problems = [*not_compared(stated, STATED), *await self._step(written, stated)]
            found.append((written["metadata"]["name"], problems))
        told = await self._told()
        for number, (name, problems) in enumerate(found):
            problems += self._compare_scores(expected[number], told.get(name))
            yield f"{self._vector['id']}[{number}]", sorted(set(problems))
        await _clear(self._world, self._extender)

    async def _set_up(self) -> None:
        for node in self._vector["nodes"]:
            await self._world.post(NODES, node)
        for quota in self._vector.get("quotas", ()):
            namespace = quota["metadata"]["namespace"]
            await self._world.post("/api/v1/namespaces", {"metadata": {"name": namespace}}, or_exists=True)
            await self._world.post(f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
        for written in self._vector["pods"]:
            namespace = written["metadata"].get("namespace", "default")
            await self._world.post("/api/v1/namespaces", {"metadata": {"name": namespace}}, or_exists=True)
        await self._world.seen_by(self._extender)

    async def _step(self, written: Json, expected: Json) -> list[str]:
        response = await self._extender.review(written)
        if not response["allowed"] and response["status"]["message"] == OVER_QUOTA:
            if "chosen" in expected:
                return ["admitted: refused for a quota"]
            response = await self._extender.review(written, namespace="elsewhere")
        if "admission_error" in expected or not response["allowed"]:
            said = "" if response["allowed"] else response["status"]["message"]
            stated = {"admission_error": expected.get("admission_error", "")}
            return [*differences(stated, {"admission_error": said})]
        admitted = patched(written, response)
        problems = [*self._compare_admitted(written, admitted, response, expected)]
        made = await self._world.post(_pods(written), admitted)
        await self._world.seen_by(self._extender)
        answer = await self._extender.filter(made, self._names)
        after = await self._world.get(_path(made))
        problems += self._compare_filter(made, after, answer, expected)
        if "chosen" in expected:
            problems += await self._bind(after, expected)
        return problems

    # ---- what is compared --------------------------------------------------------------------------------

    def _compare_admitted(
        self, written: Json, admitted: Json, response: Json, expected: Json
    ) -> Iterator[str]:
        patch = json.loads(b64decode(response["patch"])) if response.get("patch") else []
        pod = _device_pod(admitted)
        env = [each.get("env") or [] for each in _containers(admitted)]
        actual = admitted_of(pod)
        for container, variables in zip(actual["containers"], env, strict=True):
            container["env"] = [(one["name"], one.get("value", "")) for one in variables]
        if admitted["spec"].get("runtimeClassName"):
            actual["runtimeClassName"] = admitted["spec"]["runtimeClassName"]
        is_ours = admitted["spec"].get("schedulerName") == self._scheduler
        yield from differences(
            {"has_resource": expected["has_resource"], "admitted": normalised(expected["admitted"])},
            {"has_resource": is_ours, "admitted": actual},
        )
        places = [
            next(at for at, start in enumerate(ORDER) if each["path"].startswith(start)) for each in patch
        ]
        if places != sorted(places):
            yield f"patch: out of order: {patch}"
        for at in range(len(patch)):
            rest = [*patch[:at], *patch[at + 1 :]]
            try:
                is_idle = _applied(written, rest) == admitted
            except Exception:  # noqa: BLE001 - then others build on it
                continue
            if is_idle:
                yield f"patch: {patch[at]} changes nothing"

    def _compare_filter(self, made: Json, after: Json, answer: Json, expected: Json) -> Iterator[str]:
        if not any(expected["requests"]):
            if answer.get("NodeNames") != self._names:
                yield f"filter: {answer}, expected all nodes of a pod that asks for no card"
            return
        unstable = frozenset(expected.get("unstable", ()))
        if "chosen" not in expected:
            failed = answer.get("FailedNodes") or {}
            yield from differences({"failed": expected.get("failed", {})}, {"failed": failed})
            if answer.get("NodeNames"):
                yield f"chosen: {answer['NodeNames']}, expected none"
            return
        chosen = answer.get("NodeNames") or [str(answer)]
        if len(chosen) != 1 or chosen[0] not in self._best(made, expected, unstable):
            yield f"chosen: {chosen}, expected one of {expected['best']}"
        elif chosen[0] not in unstable:
            yield from self._compare_annotations(made, after, chosen[0], expected)

    def _best(self, made: Json, expected: Json, unstable: frozenset[str]) -> Iterable[str]:
        if not unstable:
            return list(expected["best"])
        policy = self._default.of(made["metadata"].get("annotations") or {})
        stable = {name: np.float32(each) for name, each in expected["scores"].items() if name not in unstable}
        return {*best_of(stable, policy), *unstable}

    def _compare_annotations(self, made: Json, after: Json, node: str, expected: Json) -> Iterator[str]:
        """Compare what is written: all of it on the node that HAMi took, its cards on an equal one."""
        pod = _device_pod(made)
        written = dict(after["metadata"]["annotations"])
        acceptable = expected["devices"][node]
        if not any(
            unpadded(one, pod).items() <= unpadded(written, pod, like=one).items() for one in acceptable
        ):
            yield f"annotations: {written}, expected the cards of one of {acceptable}"
        stated = _unstamped(unpadded(expected["annotations"], pod))
        actual = _unstamped(unpadded(written, pod, like=expected["annotations"]))
        if actual.keys() != stated.keys() or actual[CHOSEN_NODE] != node:
            yield f"annotations: {actual}, expected those of {stated}"
        if after["metadata"].get("labels", {}).get(CHOSEN_NODE) != node:
            yield f"labels: {after['metadata'].get('labels')}, expected {CHOSEN_NODE}={node}"
        is_other = any(
            one.items() <= actual.items() and not one.items() <= stated.items() for one in acceptable
        )
        if node == expected["chosen"] and not is_other:
            yield from differences({"annotations": stated}, {"annotations": actual})

    def _compare_scores(self, expected: Json, told: str | None) -> Iterator[str]:
        if "chosen" not in expected:
            return
        found = _SCORES.fullmatch(told or "")
        if found is None:
            yield f"scores: the event says {told}"
            return
        actual = dict(each.rsplit(":", 1) for each in found[2].split(","))
        stated = {name: f"{np.float32(score):.2f}" for name, score in expected["scores"].items()}
        for name in expected.get("unstable", ()):
            actual.pop(name, None)
            stated.pop(name, None)
        yield from differences({"scores": stated}, {"scores": actual})

    async def _told(self) -> dict[str, str]:
        """Return what the events of filter say, by pod."""
        await self._extender.recorded()
        events = self._world.events("FilteringSucceed")
        return {each["involvedObject"]["name"]: each["message"] for each in events}

    # ---- on to the next step -----------------------------------------------------------------------------

    async def _bind(self, pod: Json, expected: Json) -> list[str]:
        """Bind the pod as HAMi has it, and serve it as its device plugin does."""
        node, name = expected["chosen"], pod["metadata"]["name"]
        ours = pod["metadata"].get("annotations") or {}
        if any(ours.get(key) != text for key, text in expected["annotations"].items()):
            stamp = str(int(ours.get(CHOSEN_AT, "0")) + 1)
            theirs = {**expected["annotations"], CHOSEN_NODE: node, CHOSEN_AT: stamp}
            await self._world.patch(_path(pod), {"metadata": {"annotations": theirs}})
            await self._world.seen_by(self._extender)
        error = await self._extender.bind(pod, node)
        if error:
            return [f"bind: {error}"]
        after = await self._world.get(_path(pod))
        phase = after["metadata"]["annotations"]
        problems = []
        if after["spec"].get("nodeName") != node or phase.get(BIND_PHASE) != "allocating":
            problems.append(f"bind: pod is on {after['spec'].get('nodeName')}, {phase.get(BIND_PHASE)}")
        if not _STAMPED.fullmatch(phase.get(BIND_TIME, "")):
            problems.append(f"bind: {BIND_TIME} is {phase.get(BIND_TIME)}")
        held = {key: text for key, text in (await self._world.annotations(node)).items() if key in LOCKS}
        if any(
            key == LOCKS[0] and not text.endswith(f",{pod['metadata']['namespace']},{name}")
            for key, text in held.items()
        ):
            problems.append(f"bind: the lock is {held}")
        if held:
            await self._world.annotate_node(node, dict.fromkeys(held))
        return problems


async def _clear(world: Cluster, extender: Extender) -> None:
    """Remove all of a scenario."""
    for path in ("/api/v1/pods", "/api/v1/resourcequotas", NODES, "/api/v1/events"):
        for each in (await world.get(path))["items"]:
            meta = each["metadata"]
            owner = (
                f"/api/v1/namespaces/{meta['namespace']}{path.removeprefix('/api/v1')}"
                if "namespace" in meta
                else path
            )
            await world.remove(f"{owner}/{meta['name']}")
    await world.seen_by(extender)


def _pods(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata'].get('namespace', 'default')}/pods"


def _path(pod: Json) -> str:
    return f"{_pods(pod)}/{pod['metadata']['name']}"


def _device_pod(pod: Json) -> DevicePod:
    return DevicePod.of(msgspec.convert(pod, Pod, strict=False))


def _containers(pod: Json) -> list[Json]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def _unstamped(annotations: Json) -> Json:
    return {
        key: text for key, text in annotations.items() if not _STAMPED.fullmatch(text) and key != BIND_PHASE
    }


def _applied(pod: Json, patch: list[Any]) -> Json:
    return apply_json_patch(pod, patch)


def steps_through_http(vectors: Iterable[Json]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the family, the name and the differences of each step, without an event loop of the caller's."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        steps = run_vectors(vectors)
        while True:
            step = runner.run(_next(steps))
            if step is None:
                return
            yield step


async def _next(steps: AsyncIterator[tuple[str, str, list[str]]]) -> tuple[str, str, list[str]] | None:
    return await anext(steps, None)
