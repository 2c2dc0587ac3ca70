"""Runs recorded calls of kube-scheduler: `python -m tests.conformance.extender FILE`.

Each scenario has a sandbox with its nodes and pods, and an extender with the rules that the recording's stood for.
Every call is sent as it was recorded, over HTTP. The answer must be one that kube-scheduler takes. Where the
recording's extender decided by those rules, the answer must be the recorded one; where it failed on purpose (500,
garbage, an error text), the one that the rules give. A binding must have reached the API server.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import uvloop
from kdsl.extender.service import ExtenderOptions
from kdsl.sandbox.faults import Answer, Match

from tests.conformance.acceptance import objections
from tests.conformance.tally import Tally, differences
from tests.extender.site import Reply, Site, post, site

Json = dict[str, Any]
DATA = Path(__file__).parent / "data/extender"
RULES = DATA / "recorded.kdsl"
PREFIX = "/x"
TAKES_ALL = frozenset(("extender-bind", "extender-ignorable", "extender-timeout"))
"""Scenarios whose extender took every node that it was asked about."""
REFUSED = "no binding today"


def read_scenarios(file: Path) -> Iterator[Json]:
    """Read the recorded scenarios."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def run_scenarios(scenarios: Iterable[Json], tally: Tally) -> None:
    """Send the calls of all scenarios."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for scenario in scenarios:
            if scenario["exchanges"]:
                with tally.survives("scenario", scenario["name"]):
                    runner.run(_run(scenario, tally))


async def _run(scenario: Json, tally: Tally) -> None:
    name = scenario["name"]
    profile = "takes_all" if name in TAKES_ALL else "drops_n1"
    options = ExtenderOptions(prefix=PREFIX)
    async with site(rules=RULES, profile=profile, nodes=0, options=options) as here:
        stage = _Stage(here, name)
        await stage.build(scenario["exchanges"])
        knows_nodes = scenario["config"][0]["nodeCacheCapable"]
        for number, exchange in enumerate(scenario["exchanges"]):
            verb = exchange["request"]["path"].rsplit("/", 1)[1]
            with tally.survives(verb, f"{name} {number}"):
                found = await stage.compare(verb, knows_nodes, exchange)
                tally.add(verb, f"{name} {number}", found)


class _Stage:
    """The cluster of a scenario, with UIDs of its own in the place of the recorded ones."""

    def __init__(self, here: Site, name: str) -> None:
        self._site, self._world, self._name = here, here.world, name
        self._uids: dict[str, str] = {}

    async def build(self, exchanges: list[Json]) -> None:
        """Create the nodes and pods that the calls speak of."""
        await self._world.send("POST", "/api/v1/namespaces", {"metadata": {"name": self._name}})
        bodies = [exchange["request"]["body"] for exchange in exchanges]
        for node in dict.fromkeys(name for body in bodies for name in _nodes_of(body)):
            await self._world.node(node)
        for body in bodies:
            for node, pod in _victims_of(body):
                await self._pod(pod, node)
            pod = body.get("Pod", {}).get("metadata") or {"name": body["PodName"], "uid": body["PodUID"]}
            await self._pod(pod)
        await self._world.settled_for("nodes", "pods")

    async def _pod(self, meta: Json, node: str = "") -> None:
        if meta["uid"] in self._uids:
            return
        spec = {"containers": [{"name": "c", "image": "img:1"}], **({"nodeName": node} if node else {})}
        body = {"metadata": {"name": meta["name"]}, "spec": spec}
        made = await self._world.send("POST", f"/api/v1/namespaces/{self._name}/pods", body)
        self._uids[meta["uid"]] = made["metadata"]["uid"]

    async def compare(self, verb: str, knows_nodes: bool, exchange: Json) -> list[str]:
        """Send one call; return what is wrong with its answer."""
        recorded, request = exchange["response"], self._own(exchange["request"]["body"])
        fails = isinstance(recorded["body"], dict) and recorded["body"].get("Error") == REFUSED
        if fails:
            refusal = Answer(403, REFUSED)
            self._world.sandbox.faults.once(Match("POST", "*/binding"), refusal)
        reply = await post(self._site.port, exchange["request"]["path"], request)
        answer = _json(reply)
        found = objections(verb, knows_nodes, request, reply.status, answer)
        if found:
            return found
        if fails:
            return [] if REFUSED in answer.get("Error", "") else [f"the refusal is not told: {answer}"]
        expected = self._own(self._expected(verb, recorded, request))
        if verb == "bind":
            found += self._bound(request)
        return [*found, *differences(expected, answer, verb)]

    def _expected(self, verb: str, recorded: Json, request: Json) -> Any:
        """Return the recorded answer, or where that was a failure on purpose the one by the rules."""
        body = recorded["body"]
        if (
            recorded["status"] == 200
            and not isinstance(body, str)
            and not (verb == "filter" and body.get("Error"))
        ):
            return body
        names = request["NodeNames"]
        if self._name in TAKES_ALL:
            return {"NodeNames": names}
        return {
            "NodeNames": [name for name in names if name != "n1"],
            "FailedNodes": {"n1": "extender says no"},
        }

    def _bound(self, request: Json) -> list[str]:
        pod = self._world.get(request["PodName"], namespace=request["PodNamespace"])
        node = pod["spec"].get("nodeName") if pod else None
        return [] if node == request["Node"] else [f"the pod is on {node}"]

    def _own(self, value: Any) -> Any:
        """Return a value with the UIDs of this cluster, and with times for the places of times."""
        text = re.sub(r"<time:\d+>", "2026-01-01T00:00:00Z", json.dumps(value))
        for recorded, own in self._uids.items():
            text = text.replace(json.dumps(recorded), json.dumps(own))
        return json.loads(text)


def _nodes_of(body: Json) -> list[str]:
    if body.get("Nodes"):
        return [node["metadata"]["name"] for node in body["Nodes"]["items"]]
    if body.get("NodeNames"):
        return list(body["NodeNames"])
    victims = body.get("NodeNameToVictims") or body.get("NodeNameToMetaVictims")
    return list(victims) if victims else [body["Node"]]


def _victims_of(body: Json) -> Iterator[tuple[str, Json]]:
    """Yield the victims of a call, each with its node; those that are named by UID get a name."""
    for node, victims in (body.get("NodeNameToVictims") or body.get("NodeNameToMetaVictims") or {}).items():
        for pod in victims["Pods"]:
            yield node, pod.get("metadata") or {"name": f"victim-{node}", "uid": pod["UID"]}


def _json(reply: Reply) -> Any:
    try:
        return reply.json
    except ValueError as error:
        raise AssertionError(f"the answer is no JSON: {reply.body[:200]!r}") from error


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(file: Path) -> None:
    """Run the recorded calls of FILE."""
    tally = Tally()
    run_scenarios(read_scenarios(file), tally)
    sys.exit(tally.finish())


if __name__ == "__main__":
    main()
