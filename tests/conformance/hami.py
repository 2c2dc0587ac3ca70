"""Runs the HAMi vectors: `python -m tests.conformance.hami FILE [--families a,b] [--through http]`.

Each scenario is a sequence of pods on nodes with registered cards, with HAMi 2.10.0's answer to each pod. A step
is one pod; compared is everything that its answer states: admission, requests, the reasons and float32 scores of
nodes, the cards of every node, the best nodes, and what the chosen pod is annotated with. Where HAMi may give other
cards than it did, the cards must be some of those, and the annotations are compared for the cards that HAMi gave.
Then the pod is placed where HAMi placed it, so that the next step starts from HAMi's state. With `--through http` all of it goes through the extender: see
`hami_http`. A kind of device without
rules fails its steps. Left out are time stamps, which the vectors do not have, and what a step calls unstable.

One bug of HAMi 2.10.0 is known and not copied (#2899 there): on nodes whose cards have their model as type, a
container without cards leaves no place in the record of its pod. Such a record is compared without empty places.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
from kdsl.app import check_rules, shipped_rules
from kdsl.base.quantity import Quantity
from kdsl.cluster.api.objects import Node, Pod, quantity
from kdsl.cluster.devices.cards import DeviceGrant
from kdsl.cluster.devices.codec import collapse, decode
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.devices.quota import NO_QUOTA, Quota, limits_of
from kdsl.cluster.devices.usage import Holding, with_holdings
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.admission import admit_pod
from kdsl.plan.devices.attempt import NodeCards, Unplaced
from kdsl.plan.devices.demand import Allocation, Demand, Requests
from kdsl.plan.devices.placing import Placed, place
from kdsl.plan.devices.program import DeviceProgram, requests_of

from tests.conformance.tally import Tally, differences, not_compared
from tests.devices.best import best_of

Json = dict[str, Any]
HAMI = "devices.profiles.hami"
"""The profile with the devices that decide as HAMi does."""
NOW = 1_700_000_000_000_000_001
"""What the clock says, in nanoseconds; annotations that hold it in any unit are time stamps."""
PLAIN = frozenset(("has_resource", "admission_error", "admitted", "requests"))
"""What a step says of a pod that asks for no card."""
STATED = PLAIN | {"scores", "failed", "unstable", "devices", "best", "chosen", "annotations"}
"""What a step may say."""
STAMPS = tuple(str(NOW // unit) for unit in (1, 10**3, 10**6, 10**9))


@cache
def programs() -> dict[str, DeviceProgram]:
    """Return the shipped devices by kind, compiled."""
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None, checked.diagnostics
    functions = CompiledFunctions(checked.rules.fns)
    shared = checked.rules.profiles[HAMI].sharing
    assert shared is not None
    compiled = [DeviceProgram(device, functions) for device in shared.devices]
    return {program.kind: program for program in compiled}


@dataclass(slots=True)
class Scenario:
    """The cluster of one scenario as it changes from step to step."""

    default: Policy
    nodes: dict[str, DeviceNode]
    quotas: dict[str, Quota]
    holdings: dict[str, list[Holding]] = field(default_factory=dict)

    @staticmethod
    def of(vector: Json) -> Scenario:
        nodes = [DeviceNode.of(msgspec.convert(node, Node, strict=False)) for node in vector["nodes"]]
        quotas = {}
        for each in vector.get("quotas", ()):
            hard = {name: quantity(text).as_integer() for name, text in each["spec"]["hard"].items()}
            quotas[each["metadata"]["namespace"]] = Quota(limits_of(hard))
        default = Policy(vector["node_policy"], vector["gpu_policy"])
        return Scenario(default, {node.name: node for node in nodes}, quotas)

    def cards(self, name: str) -> NodeCards:
        """Return a node with what the pods placed so far have of its cards taken."""
        node = self.nodes[name]
        idle = [card for program in programs().values() for card in program.inventory.cards(node)]
        return NodeCards(node, with_holdings(idle, self.holdings.get(name, ())))

    def put(self, pod: DevicePod, name: str, annotations: dict[str, str]) -> None:
        """Place a pod as the reference did."""
        pod = pod.with_annotations(annotations)
        grants: dict[str, tuple[DeviceGrant, ...]] = {}
        for program in programs().values():
            if program.record in annotations:
                grants[program.kind] = collapse(decode(annotations[program.record]), pod.phases)
                quota = self.quotas.get(pod.namespace, NO_QUOTA)
                self.quotas[pod.namespace] = quota.with_usage(program.quota_names, grants[program.kind])
        self.holdings.setdefault(name, []).append(Holding(pod, grants))


def run_vector(vector: Json) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each step and how kdsl's answer to it differs from the reference's."""
    scenario = Scenario.of(vector)
    for number, (written, expected) in enumerate(
        zip(vector["pods"], vector["expected"]["steps"], strict=True)
    ):
        pod = DevicePod.of(msgspec.convert(written, Pod, strict=False))
        admitted, problems = _compare(scenario, pod, expected)
        yield f"{vector['id']}[{number}]", problems
        if "chosen" in expected:
            scenario.put(admitted, expected["chosen"], expected["annotations"])


def _compare(scenario: Scenario, pod: DevicePod, expected: Json) -> tuple[DevicePod, list[str]]:
    problems = not_compared(expected, STATED)
    admission = admit_pod([program.admit for program in programs().values()], pod)
    if "admission_error" in expected or admission.refusal:
        stated = {"admission_error": expected.get("admission_error", "")}
        return pod, sorted([*problems, *differences(stated, {"admission_error": admission.refusal})])
    pod = admission.pod
    requests = requests_of(list(programs().values()), pod)
    actual: Json = {
        "has_resource": admission.uses_devices,
        "admitted": admitted_of(pod),
        "requests": [_plain(each) for each in requests],
    }
    stated = {
        "has_resource": expected["has_resource"],
        "admitted": normalised(expected["admitted"]),
        "requests": expected["requests"],
    }
    problems += differences(stated, actual)
    if any(requests):
        problems += _compare_nodes(scenario, pod, requests, expected)
    else:
        problems += not_compared(expected, PLAIN)
    return pod, sorted(set(problems))


def _compare_nodes(scenario: Scenario, pod: DevicePod, requests: Requests, expected: Json) -> list[str]:
    policy = scenario.default.of(pod.annotations)
    demand = Demand(pod, requests, policy, scenario.quotas.get(pod.namespace, NO_QUOTA))
    found = {name: place(programs(), demand, scenario.cards(name)) for name in scenario.nodes}
    placed = {name: each for name, each in found.items() if isinstance(each, Placed)}
    unstable = frozenset(expected.get("unstable", ()))
    scores = {name: each.score for name, each in placed.items()}
    stated = {
        "scores": {name: float(np.float32(score)) for name, score in expected.get("scores", {}).items()},
        "failed": expected.get("failed", {}),
        "best": sorted(expected.get("best", ())),
    }
    actual = {
        "scores": {name: float(score) for name, score in scores.items()},
        "failed": {name: each.reason for name, each in found.items() if isinstance(each, Unplaced)},
        "best": sorted(best_of(scores, policy)),
    }
    problems = [*differences(_without(stated, unstable, policy), _without(actual, unstable, policy))]
    for name, each in placed.items():
        acceptable = expected.get("devices", {}).get(name, [])
        records = {programs()[kind].record: one.text for kind, one in each.allocations.items() if one.cards}
        alike = [unpadded(one, pod) == unpadded(records, pod, like=one) for one in acceptable]
        if name not in unstable and not any(alike):
            problems.append(f"devices.{name}: expected one of {acceptable}, got {records}")
    if "chosen" in expected:
        problems += _compare_chosen(scenario, pod, policy, placed, expected)
    return problems


def _without(answer: Json, unstable: frozenset[str], policy: Policy) -> Json:
    """Leave out what is said of nodes whose answer the reference changes from run to run; best is then who is so
    among the others.
    """
    kept = {
        key: {name: it for name, it in answer[key].items() if name not in unstable}
        for key in ("scores", "failed")
    }
    return {**kept, "best": sorted(best_of(kept["scores"], policy)) if unstable else answer["best"]}


def _compare_chosen(
    scenario: Scenario, pod: DevicePod, policy: Policy, placed: dict[str, Placed], expected: Json
) -> list[str]:
    chosen, stated = expected["chosen"], expected["annotations"]
    if chosen not in placed:
        return [f"chosen: {chosen} does not fit"]
    at = scenario.cards(chosen)

    def written(allocations: Mapping[str, Allocation]) -> Json:
        found = {**pod.annotations, "hami.io/vgpu-node": chosen}
        for kind, allocation in allocations.items():
            found |= programs()[kind].annotations(pod, at.node, policy, allocation, NOW)
        return unpadded({key: text for key, text in found.items() if text not in STAMPS}, pod, like=stated)

    allocations = placed[chosen].allocations
    ours, stated = written(allocations), unpadded(stated, pod)
    others = [one for one in expected["devices"][chosen] if not one.items() <= stated.items()]
    if not any(unpadded(one, pod).items() <= ours.items() for one in others):
        return [*differences({"annotations": stated}, {"annotations": ours})]
    # Another of the allocations that the reference may give: what depends on it is compared for the reference's own.
    theirs = written({kind: _given(at, kind, each, stated, pod) for kind, each in allocations.items()})
    names = {"annotations": dict.fromkeys(stated, True)}, {"annotations": dict.fromkeys(ours, True)}
    return [*differences({"annotations": stated}, {"annotations": theirs}), *differences(*names)]


def _given(at: NodeCards, kind: str, ours: Allocation, stated: Json, pod: DevicePod) -> Allocation:
    """Return an allocation with the cards that annotations say, the containers that ask for none left out."""
    known = {card.id: card for card in at.cards}
    lists = [cards for cards in decode(stated.get(programs()[kind].record, "")) if cards]
    allotments = []
    for each in ours.containers:
        cards = lists.pop(0) if each.cards and lists else ()
        found = (
            replace(one, index=known[one.id].index, attributes=known[one.id].attributes) for one in cards
        )
        allotments.append(replace(each, cards=tuple(found)))
    return Allocation(tuple(allotments))


# ---- one form for both sides -------------------------------------------------------------------------------


def admitted_of(pod: DevicePod) -> Json:
    """Return what admission made of a pod."""
    admitted: Json = {
        "annotations": dict(pod.annotations),
        "containers": [_container(each) for each in pod.containers],
    }
    return admitted | ({"runtimeClassName": pod.runtime_class} if pod.runtime_class else {})


def _container(container: DeviceContainer) -> Json:
    return {
        "name": container.name,
        "limits": dict(container.limits),
        "requests": dict(container.requests),
        "env": list(container.env),
    }


def normalised(admitted: Json) -> Json:
    """Return what the reference admitted with quantities as amounts: it writes 60000 as 60k."""
    containers = [
        {
            "name": each["name"],
            "limits": _quantities(each["resources"].get("limits", {})),
            "requests": _quantities(each["resources"].get("requests", {})),
            "env": [(one["name"], one.get("value", "")) for one in each["env"]],
        }
        for each in admitted["containers"]
    ]
    return {**admitted, "containers": containers}


def _quantities(amounts: Json) -> dict[str, Quantity]:
    return {name: quantity(text) for name, text in amounts.items()}


def unpadded(annotations: Json, pod: DevicePod, like: Json | None = None) -> Json:
    """Drop the empty places of records in which `like` lacks some: see the bug named above."""
    like = annotations if like is None else like

    def is_short(key: str) -> bool:
        text = str(like.get(key, ""))
        return text.endswith(";") and text.count(";") < len(pod.containers)

    return {
        key: "".join(f"{place};" for place in text.split(";") if place) if is_short(key) else text
        for key, text in annotations.items()
    }


def _plain(requests: Any) -> Json:
    return {
        kind: {
            "Nums": request.count,
            "Type": request.kind,
            "Memreq": request.memory,
            "MemPercentagereq": request.percent,
            "Coresreq": request.cores,
        }
        for kind, request in requests.items()
    }


def read_vectors(path: Path, families: frozenset[str] = frozenset()) -> Iterator[Json]:
    """Yield the scenarios of a file; with `families` only theirs."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            vector = json.loads(line)
            if not families or vector["family"] in families:
                yield vector


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--families", default="", help="Only these, separated by commas.")
@click.option("--through", type=click.Choice(["http"]), help="Through the extender's paths, on a sandbox.")
def main(file: Path, families: str, through: str | None) -> None:
    """Run the scenarios of FILE."""
    tally = Tally()
    vectors = read_vectors(file, frozenset(filter(None, families.split(","))))
    if through is not None:
        from tests.conformance.hami_http import steps_through_http

        for family, name, problems in steps_through_http(vectors):
            tally.add(family, name, problems)
        sys.exit(tally.finish())
    for vector in vectors:
        with tally.survives(vector["family"], vector["id"]):
            for name, problems in run_vector(vector):
                tally.add(vector["family"], name, problems)
    sys.exit(tally.finish())


if __name__ == "__main__":
    main()
