"""Plays the recorded steps of one scenario against a sandbox and compares what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kdsl.sandbox import Sandbox, SandboxOptions

from tests.conformance.live.compare import Bindings
from tests.conformance.live.http_client import Answer, Client

_KEPT = ("content-type", "retry-after", "warning", "location", "allow", "www-authenticate", "vary")
_STREAM_SECONDS = 8.0


def read_scenarios(path: Path) -> list[dict[str, Any]]:
    """Return the scenarios of a recording."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@dataclass(slots=True)
class Stream:
    """A watch that was opened, and the frames that came."""

    step: dict[str, Any]
    index: int
    client: Client
    frames: list[Any] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Replay:
    """One scenario on a sandbox of its own."""

    sandbox: Sandbox
    bindings: Bindings = field(default_factory=Bindings)
    found: list[str] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    background: list[asyncio.Task[None]] = field(default_factory=list)

    async def run(self, scenario: dict[str, Any]) -> list[str]:
        """Return how the answers differ from the recorded ones."""
        client = self._client()
        for index, step in enumerate(scenario["steps"]):
            if "control" in step:
                await self._control(step["control"])
            elif "stream" in step:
                await self._open(index, step)
            elif step.get("background"):
                self.background.append(asyncio.ensure_future(self._step_beside(index, step)))
                await asyncio.sleep(0.1)
            else:
                await self._step(index, step, client)
        await asyncio.gather(*self.background)
        for stream in self.streams:
            await self._finish(stream)
        await client.close()
        return [*self.found, *self.bindings.misordered()]

    def _client(self) -> Client:
        return Client(self.sandbox.url, self.sandbox.certificates.authority)

    async def _control(self, what: str) -> None:
        seconds = re.fullmatch(r"wait (\d+)s", what)
        if seconds:
            await asyncio.sleep(int(seconds.group(1)))
        elif what == "forget-history":
            self.sandbox.store.forget_history()
        elif not what.startswith("kubectl"):
            self.found.append(f"unknown control: {what}")

    def _request(self, step: dict[str, Any]) -> dict[str, Any]:
        headers = dict(step.get("headers") or {})
        user = step["as"]
        if user != "none":
            token = "no-such-token" if user == "wrong" else self.sandbox.tokens.of(user)
            headers["authorization"] = f"Bearer {token}"
        body = self.bindings.fill(step.get("body"))
        data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        return {
            "method": step["method"],
            "path": self.bindings.fill(step["path"]),
            "query": self.bindings.fill(step.get("query") or {}),
            "headers": headers,
            "body": data,
        }

    async def _step(self, index: int, step: dict[str, Any], client: Client) -> None:
        answer = await client.request(**self._request(step))
        self._compare(index, step, answer)

    async def _step_beside(self, index: int, step: dict[str, Any]) -> None:
        client = self._client()
        await self._step(index, step, client)
        await client.close()

    def _compare(self, index: int, step: dict[str, Any], answer: Answer) -> None:
        wanted, way = step["response"], step.get("compare", "equal")
        where = f"#{index} {step['method']} {step['path']}"
        if way == "none":
            return
        found: list[str] = []
        if answer.status != wanted["status"]:
            found.append(f"status {answer.status} in place of {wanted['status']}")
        for name in _KEPT if way != "status" else _KEPT[:1]:
            recorded, given = (wanted.get("headers") or {}).get(name), answer.headers.get(name)
            if recorded != given:
                found.append(f"{name}: {given} in place of {recorded}")
        body = _read(answer)
        if way == "version":
            found += [f"{key}: {body[key]}" for key in ("major", "minor") if body[key] != wanted["body"][key]]
        elif way != "status" and wanted.get("body") is not None:
            found += self.bindings.compare(wanted["body"], body, "", way == "subset", False)
        if found and answer.status != wanted["status"]:
            found.append(f"said {str(body)[:400]}")
        self.found += [f"{where}: {item}" for item in found]

    async def _open(self, index: int, step: dict[str, Any]) -> None:
        client = self._client()
        answer = await client.send(**self._request(step))
        if answer.status != 200:
            answer.body = b"".join([part async for part in client.parts(answer)])
            self._compare(index, step, answer)
            await client.close()
            return
        if step["response"]["status"] != 200:
            self.found.append(f"#{index} {step['path']}: 200 in place of {step['response']['status']}")
        stream = Stream(step, index, client)
        stream.task = asyncio.ensure_future(_collect(stream, answer))
        self.streams.append(stream)

    async def _finish(self, stream: Stream) -> None:
        """Wait for what is to come, close the watch, and compare its frames."""
        recorded = stream.step["response"].get("frames", [])
        is_server = stream.step["response"].get("ended") == "server"
        assert stream.task is not None
        for _ in range(int(_STREAM_SECONDS / 0.05)):
            if stream.task.done() or (not is_server and len(stream.frames) >= len(recorded)):
                break
            await asyncio.sleep(0.05)
        if not is_server:
            await asyncio.sleep(0.1)
        where = f"#{stream.index} {stream.step['path']}"
        if is_server and not stream.task.done():
            self.found.append(f"{where}: the server did not end the watch")
        stream.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, asyncio.IncompleteReadError):
            await stream.task
        await stream.client.close()
        if any(_is_periodic(frame) for frame in recorded) and not any(map(_is_periodic, stream.frames)):
            self.found.append(f"{where}: no bookmark came")
        wanted = [frame for frame in recorded if not _is_periodic(frame)]
        given = [frame for frame in stream.frames if not _is_periodic(frame)]
        if len(wanted) != len(given):
            types = [frame["type"] for frame in given]
            self.found.append(f"{where}: frames {types} in place of {[frame['type'] for frame in wanted]}")
            return
        for place, (one, other) in enumerate(zip(wanted, given, strict=True)):
            self._compare_frame(f"{where} frame {place}", one, other)

    def _compare_frame(self, where: str, wanted: dict[str, Any], given: dict[str, Any]) -> None:
        if wanted["type"] != given["type"]:
            self.found.append(f"{where}: {given['type']} in place of {wanted['type']}")
        is_mark = wanted["type"] == "BOOKMARK"
        found = self.bindings.compare(wanted["object"], given["object"], "", False, is_mark)
        if is_mark:
            number = re.fullmatch(r"<rv:(\d+)>", wanted["object"]["metadata"]["resourceVersion"])
            if number:
                value, _ = self.bindings.versions[int(number.group(1))]
                self.bindings.versions[int(number.group(1))] = (value, True)
        self.found += [f"{where}: {item}" for item in found]


def _is_periodic(frame: dict[str, Any]) -> bool:
    return frame["type"] == "BOOKMARK" and "annotations" not in frame["object"]["metadata"]


async def _collect(stream: Stream, answer: Answer) -> None:
    rest = b""
    async for part in stream.client.parts(answer):
        *lines, rest = (rest + part).split(b"\n")
        stream.frames += [json.loads(line) for line in lines]


def _read(answer: Answer) -> Any:
    if not answer.body:
        return None
    text = answer.body.decode()
    try:
        return json.loads(text)
    except ValueError:
        return text


async def replay(scenario: dict[str, Any]) -> list[str]:
    """Play one scenario against a new sandbox and return the differences."""
    # One object's times are recorded as equal where they were written within a second: here time stands still.
    now = datetime.now(UTC)
    async with Sandbox(SandboxOptions(records=0)) as sandbox:
        sandbox.world.chance.now = lambda: now
        return await Replay(sandbox).run(scenario)


async def replay_all(scenarios: list[dict[str, Any]]) -> list[list[str]]:
    """Play scenarios at the same time, each against a sandbox of its own."""
    return await asyncio.gather(*(_survive(scenario) for scenario in scenarios))


async def _survive(scenario: dict[str, Any]) -> list[str]:
    try:
        return await replay(scenario)
    except Exception as cause:  # noqa: BLE001 - one scenario that cannot be run does not hide the others
        return [f"raised {type(cause).__name__}: {cause}"]
