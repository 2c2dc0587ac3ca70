"""Binds the volumes of a pod before the pod: sets those aside that there are, has the others made.

The volume controller and provisioners do the rest; the pod waits for them. Meanwhile the watch says what
changed (`notice`), and claims are read again now and then, should it be late.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeAlias

from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.storage.claims import BIND_COMPLETED, SELECTED_NODE
from kdsl.cluster.storage.volume_plan import Binding, VolumePlan
from kdsl.hooks.status import Code, Status
from kdsl.live import bodies
from kdsl.live.api import Api
from kdsl.live.bodies import JsonObject
from kdsl.live.doorbell import Doorbell
from kdsl.live.outcomes import Done, Refused, Result, message_of
from kdsl.live.retries import DELAYS, may_pass, repeated

TIMEOUT: Final = 600.0
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 15.0
_Check: TypeAlias = Callable[[], Awaitable[bool]]


class _VolumeError(Exception):
    """The volumes cannot be bound."""


class Volumes:
    """Carries plans of volumes to the API server. `bind` belongs to the thread of the event loop."""

    def __init__(self, api: Api, timeout: float = TIMEOUT) -> None:
        self._api, self._timeout = api, timeout
        self._lock = threading.Lock()
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._changed: set[str] = set()
        self._doorbell = Doorbell(self._wake)

    def start(self) -> None:
        """Begin to hear of changes, on the event loop that runs now."""
        self._doorbell.connect()

    def notice(self, claim: str) -> None:
        """Hear that the claim `namespace/name` changed, from any thread; most are of no concern."""
        with self._lock:
            if claim not in self._waiting:
                return
            self._changed.add(claim)
        self._doorbell.ring()

    async def bind(self, plan: VolumePlan) -> Status | None:
        """Bind the volumes of a plan; None means that they are bound, an ERROR says why not.

        It may be cancelled at any time. What the server was told by then stays, as in kube-scheduler.
        """
        try:
            await self._bind(plan)
        except _VolumeError as error:
            return Status(Code.ERROR, (f"binding volumes: {error}",))
        return None

    async def _bind(self, plan: VolumePlan) -> None:
        checks: dict[str, _Check] = {}
        for binding in plan.bindings:
            if await self._set_aside(binding):
                checks[_key(binding.claim)] = partial(self._is_joined, binding)
        for claim in plan.provisions:
            if await self._select(claim, plan.node):
                checks[_key(claim)] = partial(self._is_made, claim, plan.node)
        if checks:
            await self._settled(checks)

    async def _set_aside(self, binding: Binding) -> bool:
        """Set a volume aside for its claim; False where the claim is bound already."""
        name = binding.volume.metadata.name
        meta = binding.claim.metadata
        found = await repeated(lambda: self._api.read_claim(meta.namespace, meta.name))
        if not isinstance(found, Done):
            raise _VolumeError(message_of(found))
        claim = found.value
        _check_same(claim, binding.claim)
        if _is_bound(claim):
            return False
        uid = claim["metadata"]["uid"]

        def change(volume: JsonObject) -> JsonObject | None:
            reference = _reference(volume)
            if reference and not _is_of(reference, claim):
                owner = f"{reference.get('namespace')}/{reference.get('name')}"
                raise _VolumeError(f'volume "{name}" already bound to a different claim "{owner}"')
            return None if reference.get("uid") == uid else bodies.set_aside(volume, claim)

        await _update(lambda: self._api.read_volume(name), change, self._api.update_volume)
        return True

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> bool:
        """Have a volume made for the claim near a node; False where it is bound already."""
        meta = claim.metadata

        def change(found: JsonObject) -> JsonObject | None:
            _check_same(found, claim)
            is_told = _is_bound(found) or _annotations(found).get(SELECTED_NODE) == node
            return None if is_told else bodies.selected(found, node)

        found = await _update(
            lambda: self._api.read_claim(meta.namespace, meta.name), change, self._api.update_claim
        )
        return not _is_bound(found)

    async def _settled(self, checks: dict[str, _Check]) -> None:
        """Wait until every check says that its claim is bound."""
        clock = asyncio.get_running_loop().time
        end, pause = clock() + self._timeout, _FIRST_PAUSE
        with self._listening(checks) as changed:
            while checks:
                left = end - clock()
                if left <= 0:
                    claims = ", ".join(f'"{key.partition("/")[2]}"' for key in checks)
                    raise _VolumeError(f"not bound within {self._timeout:g} s: {claims}")
                if not await _comes(changed, min(pause, left)):
                    pause = min(2 * pause, _LONGEST_PAUSE)
                changed.clear()
                for key in [key for key, check in checks.items() if await check()]:
                    del checks[key]

    async def _is_joined(self, binding: Binding) -> bool:
        """Tell whether claim and volume are bound; raises where the volume was taken back."""
        claim = await self._claim(binding.claim)
        if claim is None or _is_bound(claim):
            return claim is not None
        name = binding.volume.metadata.name
        volume = await self._api.read_volume(name)
        if isinstance(volume, Done) and not _reference(volume.value).get("uid"):
            raise _VolumeError(f'ClaimRef got reset for pv "{name}"')
        return False

    async def _is_made(self, wanted: PersistentVolumeClaim, node: str) -> bool:
        """Tell whether a claim has its volume; raises where the node was given back."""
        claim = await self._claim(wanted)
        if claim is None or _is_bound(claim):
            return claim is not None
        if _annotations(claim).get(SELECTED_NODE) != node:
            raise _VolumeError(f'selectedNode annotation reset for PVC "{wanted.metadata.name}"')
        return False

    async def _claim(self, wanted: PersistentVolumeClaim) -> JsonObject | None:
        """Return a claim as it is now, None where the server does not say; raises where it is gone."""
        meta = wanted.metadata
        found = await repeated(lambda: self._api.read_claim(meta.namespace, meta.name))
        if isinstance(found, Done):
            _check_same(found.value, wanted)
            return found.value
        if isinstance(found, Refused) and found.is_gone:
            raise _VolumeError(message_of(found))
        return None

    @contextmanager
    def _listening(self, claims: Iterable[str]) -> Iterator[asyncio.Event]:
        """Give what is set when one of the claims changes."""
        changed, keys = asyncio.Event(), tuple(claims)
        with self._lock:
            for key in keys:
                self._waiting.setdefault(key, []).append(changed)
        try:
            yield changed
        finally:
            with self._lock:
                for key in keys:
                    self._waiting[key].remove(changed)
                    if not self._waiting[key]:
                        del self._waiting[key]

    def _wake(self) -> None:
        with self._lock:
            events = [event for key in self._changed for event in self._waiting.get(key, ())]
            self._changed.clear()
        for event in events:
            event.set()


async def _update(
    read: Callable[[], Awaitable[Result[JsonObject]]],
    change: Callable[[JsonObject], JsonObject | None],
    write: Callable[[JsonObject], Awaitable[Result[JsonObject]]],
) -> JsonObject:
    """Read an object, change it and put it back, from the start where somebody else was faster.

    `change` gives None where there is nothing to change. Returns the object as it is now.
    """
    for delay in (0.0, *DELAYS):
        await asyncio.sleep(delay)
        found = await repeated(read)
        if not isinstance(found, Done):
            raise _VolumeError(message_of(found))
        changed = change(found.value)
        if changed is None:
            return found.value
        result = await write(changed)
        if isinstance(result, Done):
            return result.value
        failure = result
        if not may_pass(result):
            break
    raise _VolumeError(message_of(failure))


async def _comes(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _check_same(found: JsonObject, wanted: PersistentVolumeClaim) -> None:
    if found["metadata"].get("uid") != wanted.metadata.uid:
        raise _VolumeError(f"{_named(wanted)} was deleted and made anew")


def _key(claim: PersistentVolumeClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _named(claim: PersistentVolumeClaim) -> str:
    return f'persistentvolumeclaim "{claim.metadata.name}"'


def _annotations(thing: JsonObject) -> JsonObject:
    return thing["metadata"].get("annotations") or {}


def _reference(volume: JsonObject) -> JsonObject:
    return (volume.get("spec") or {}).get("claimRef") or {}


def _is_of(reference: JsonObject, claim: JsonObject) -> bool:
    """Tell whether a volume's reference means the claim; one without uid was written by a person."""
    meta = claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return same and reference.get("uid") in (None, "", meta["uid"])


def _is_bound(claim: JsonObject) -> bool:
    return bool((claim.get("spec") or {}).get("volumeName")) and BIND_COMPLETED in _annotations(claim)
