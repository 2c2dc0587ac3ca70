"""Plays a recorded scenario: a sandbox, a scheduler, and the script's steps at their times."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kdsl.sandbox import Answer, RecordedRequest, Sandbox
from kdsl.sandbox.model.errors import ApiError

from tests.conformance.scheduler import recorded_faults
from tests.conformance.scheduler.actors import Actor, ProcessActor, start
from tests.conformance.scheduler.recorded_extender import RecordedExtender
from tests.conformance.scheduler.recorded_faults import Key, key_of
from tests.conformance.scheduler.recording import Json, Kind, Scenario, Step
from tests.conformance.scheduler.writes import Words

_LOOK_EVERY = 0.01
_GRACE = 4.0
"""Seconds that a request may be later than it was in the recording; back-offs are random."""
_SETTLE = 0.7
"""Seconds after the last step in which nothing more may come."""
_FIRST_REQUEST = "/apis/events.k8s.io/v1"
_HURRY = {"no-nodes": 0.4}
"""So much of the recorded time passes between steps where the first back-off must not end in between."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_NOWHERE = "http://127.0.0.1:9"


@dataclass(slots=True)
class Played:
    """The result of a scenario in this process."""

    requests: list[RecordedRequest]
    """Of the scheduler, since it was idle, or from its start where the recording begins there."""
    words: Words
    read: list[tuple[Step, Any]] = field(default_factory=list)
    """What the script's GETs were answered."""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    """What the extender was asked."""
    exits: list[tuple[Step, int | None]] = field(default_factory=list)
    """What the first scheduler had ended with where the recording tells, None while it runs."""
    acted: list[tuple[Step, float]] = field(default_factory=list)
    """When each step of the script was taken, on the clock of the requests."""
    logs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    pods: dict[str, Json] = field(default_factory=dict)
    """In the end, by name."""


async def play(scenario: Scenario, exchanges: list[Json]) -> Played:
    """Play a scenario to its end."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kdsl-stage-")))
        sandbox = await stack.enter_async_context(Sandbox())
        words = Words(extenders={_NOWHERE: "<nothing-listens-here>"})
        extender: RecordedExtender | None = None
        if exchanges:
            is_late = scenario.name == "extender-timeout"
            extender = RecordedExtender(exchanges, words, is_late=is_late)
            await stack.enter_async_context(extender)
            words.extenders = {extender.url: "<extender>"}
        stage = Stage(scenario, sandbox, folder, words, extender)
        try:
            played = await stage.play()
        finally:
            await stage.end()
        played.asked = extender.asked if extender else []
        played.logs = [actor.log for actor in stage.actors]
        return played


class Stage:
    """One scenario under way."""

    def __init__(
        self,
        scenario: Scenario,
        sandbox: Sandbox,
        folder: Path,
        words: Words,
        extender: RecordedExtender | None,
    ) -> None:
        self._scenario, self._sandbox, self._folder, self._words = scenario, sandbox, folder, words
        self._extender = extender
        self._given_up: Counter[Key] = Counter()
        self._awaited: Counter[Key] = Counter()
        self._acted = time.monotonic()
        self._acted_recorded = 0.0
        self._played = Played([], words)
        self._begin = 0
        self.actors: list[Actor] = []

    async def play(self) -> Played:
        """Play all steps; return what the scheduler sent."""
        scenario = self._scenario
        if scenario.name == "startup-list-watch":
            self._sandbox.faults.refuse_watch_list()
        self._occurrences = recorded_faults.install(scenario, self._sandbox.faults)
        starts_itself = any(_starts(step) for step in scenario.steps)
        if not starts_itself:
            await self._start()
            await self.actors[0].idle()
        self._begin = len(self._sandbox.recorder.requests)
        self._acted = time.monotonic()
        if scenario.counts:
            await self._crowd()
        for index, step in enumerate(scenario.steps):
            await self._step(index, step)
        await self._wait_until(self._due(scenario.steps[-1].seconds) + _SETTLE)
        await self._wait_for_requests(scenario.steps[-1].seconds)
        self._played.requests = list(self._sandbox.recorder.requests)[self._begin :]
        self._played.pods = await self._pods()
        return self._played

    async def end(self) -> None:
        """End all schedulers."""
        for actor in self.actors:
            await actor.end()

    # ---- steps -------------------------------------------------------------------------------------------

    async def _step(self, index: int, step: Step) -> None:
        if step.kind is Kind.EXTENDER:
            self._awaited[key_of("ask", step.what["path"])] += 1
        elif step.kind is Kind.REQUEST:
            if _starts(step) and not self.actors:
                await self._start()
                if isinstance(self.actors[0], ProcessActor):
                    await self.actors[0].idle()
                self._mark(step)
            if step.is_write:
                self._awaited[key_of(step.what["method"], step.what["path"])] += 1
            elif step.fault and not step.what["path"].startswith(_LEASES):
                self._break_read(index, step)
        elif step.kind is Kind.DRIVER:
            await self._before(index, step)
            await self._drive(step)
            self._mark(step)
        elif step.kind is Kind.CONTROL:
            await self._before(index, step)
            await self._control(index, step)
            self._mark(step)

    async def _before(self, index: int, step: Step) -> None:
        """Wait until what was recorded before a step has happened."""
        steps = self._scenario.steps
        acts_for_extender = step.what.get("path", "").endswith("/binding") and _is_asked(steps, index + 1)
        if acts_for_extender:
            self._awaited[key_of("ask", steps[index + 1].what["path"])] += 1
        elif not (index and recorded_faults.is_intervention(steps[index - 1])):
            await self._wait_until(self._due(step.seconds))
        await self._wait_for_requests(step.seconds)
        if acts_for_extender:
            self._awaited[key_of("ask", steps[index + 1].what["path"])] -= 1  # its own step counts it

    async def _drive(self, step: Step) -> None:
        what = step.what
        reply = await self._send(
            what["method"], what["path"], what.get("body"), what.get("content-type", "application/json"),
            what.get("query") or {},
        )  # fmt: skip
        expected = step.response.get("status")
        if reply[0] != expected:
            self._played.errors.append(
                f"the script's {what['method']} {what['path']} was answered {reply[0]}, not {expected}: "
                f"{json.dumps(reply[1])[:300]}"
            )
        recorded = step.response.get("uid")
        if recorded and isinstance(reply[1], dict) and (reply[1].get("metadata") or {}).get("uid"):
            self._words.learn(recorded, reply[1]["metadata"]["uid"])
        if what["method"] == "GET":
            self._played.read.append((step, reply[1]))

    async def _send(
        self, method: str, path: str, body: Any, content_type: str, query: dict[str, str]
    ) -> tuple[int, Any]:
        """Send a request of the script: past the network, which may be down."""
        sandbox = self._sandbox
        user = sandbox.api.identify(f"Bearer {sandbox.token}")
        raw = b"" if body is None else self._words.actual(json.dumps(body)).encode()
        headers = {"content-type": content_type, "accept": "application/json"}
        asked = "&".join(f"{name}={value}" for name, value in query.items()).encode()
        try:
            reply = await sandbox.api.answer(user, method, path, asked, headers, raw)
        except ApiError as error:
            return error.code, error.body
        return reply.code, json.loads(reply.body)

    async def _control(self, index: int, step: Step) -> None:
        text, faults = step.what["text"], self._sandbox.faults
        if text == "all watch connections are cut":
            assert faults.network is not None
            for later in _reads_until_action(self._scenario.steps, index + 1):
                if later.fault and later.seconds - step.seconds < _GRACE:
                    recorded_faults.install_read(later, faults)
            faults.network.cut()
        elif text == "connections are cut and refused":
            faults.partition()
        elif text == "connections are accepted again":
            faults.heal()
        elif text == "the first leads; the second starts":
            await self._start()
            await self.actors[-1].idle()
        elif text in ("SIGTERM", "SIGKILL"):
            actor = next(actor for actor in self.actors if actor.is_running)
            await actor.signal(is_kill=text == "SIGKILL")
        elif text in ("exit code", "the process ended"):
            await self._wait_for_end(step)
        elif text == "every lease request is answered 500 from now on":
            faults.always(
                lambda request: request.path.startswith(_LEASES),
                Answer(500, "Internal error occurred: made by the recorder"),
            )

    def _break_read(self, index: int, step: Step) -> None:
        """Cut a watch whose next request is to fail, where nothing recorded before says why it was sent."""
        steps, path = self._scenario.steps, step.what["path"]
        before = [each for each in steps[:index] if each.kind is Kind.REQUEST and each.what["path"] == path]
        if not before or before[-1].fault or before[-1].response.get("status") != 200:
            return

        async def later() -> None:
            await self._wait_until(self._due(step.seconds))
            for each in steps[index:]:
                if each.fault and each.kind is Kind.REQUEST and each.what["path"] == path:
                    recorded_faults.install_read(each, self._sandbox.faults)
            self._sandbox.faults.drop_watches(path.rpartition("/")[2])

        self._later = asyncio.ensure_future(later())

    async def _crowd(self) -> None:
        """Create a thousand pods on a hundred nodes."""
        counts = self._scenario.counts["requests"]
        await self._send("POST", "/api/v1/namespaces", {"metadata": {"name": "thousand"}}, _JSON, {})
        room = {"cpu": "32", "memory": "64Gi", "pods": "110"}
        for number in range(100):
            node = {"metadata": {"name": f"n{number}"}, "status": {"capacity": room, "allocatable": room}}
            await self._send("POST", "/api/v1/nodes", node, _JSON, {})
        await asyncio.sleep(_SETTLE)
        pods = "/api/v1/namespaces/thousand/pods"
        for number in range(1000):
            pod = {"metadata": {"name": f"p{number}"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            await self._send("POST", pods, pod, _JSON, {})
            await asyncio.sleep(0)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            done = [each for each in self._sandbox.recorder.requests if each.status == 201]
            if len(done) >= sum(counts.values()):
                break
            await asyncio.sleep(0.05)

    async def _wait_for_end(self, step: Step) -> None:
        actor = self.actors[0]
        deadline = time.monotonic() + _GRACE
        while actor.is_running and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_EVERY)
        self._played.exits.append((step, actor.exit_code))

    # ---- waiting -----------------------------------------------------------------------------------------

    def _mark(self, step: Step) -> None:
        self._acted, self._acted_recorded = time.monotonic(), step.seconds
        self._played.acted.append((step, asyncio.get_running_loop().time()))

    def _due(self, seconds: float) -> float:
        """Return when a step of the recording is due here: as long after the step before it as there."""
        hurry = _HURRY.get(self._scenario.name, 1.0)
        return self._acted + hurry * max(0.0, seconds - self._acted_recorded)

    async def _wait_until(self, when: float) -> None:
        await asyncio.sleep(max(0.0, when - time.monotonic()))

    async def _wait_for_requests(self, seconds: float) -> None:
        """Wait for what is awaited, some time longer than it took in the recording."""
        deadline = self._due(seconds) + _GRACE
        while True:
            missing = self._awaited - self._given_up - self._seen()
            if not missing:
                return
            if time.monotonic() > deadline:
                self._given_up += missing
                return
            await asyncio.sleep(_LOOK_EVERY)

    def _seen(self) -> Counter[Key]:
        seen: Counter[Key] = Counter()
        for request in list(self._sandbox.recorder.requests)[self._begin :]:
            if request.method != "GET":
                seen[key_of(request.method, request.path)] += 1
        if self._extender is not None:
            seen.update(key_of("ask", path) for path, _ in self._extender.asked)
        return seen

    async def _start(self) -> None:
        url = _NOWHERE if self._extender is None else self._extender.url
        actor = await start(self._scenario, self._sandbox, self._folder, url)
        self.actors.append(actor)

    async def _pods(self) -> dict[str, Json]:
        _, found = await self._send("GET", "/api/v1/pods", None, _JSON, {})
        return {pod["metadata"]["name"]: pod for pod in found["items"]}


_JSON = "application/json"


def _starts(step: Step) -> bool:
    """Return whether a request is the first one of a scheduler."""
    return step.kind is Kind.REQUEST and step.what["path"] == _FIRST_REQUEST


def _is_asked(steps: tuple[Step, ...], index: int) -> bool:
    """Return whether a step is a question to the extender."""
    return index < len(steps) and steps[index].kind is Kind.EXTENDER


def _reads_until_action(steps: tuple[Step, ...], index: int) -> Iterator[Step]:
    """Yield the lists and watches up to the script's next step."""
    for step in steps[index:]:
        if step.kind in (Kind.DRIVER, Kind.CONTROL):
            return
        if step.kind is Kind.REQUEST and step.what["method"] == "GET":
            yield step
