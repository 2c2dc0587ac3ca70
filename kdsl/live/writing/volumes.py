"""Binds the volumes of a pod before the pod: reserves existing ones, and requests the creation of others.

The volume controller and provisioners do the rest, and the pod waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.json import encode

from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.storage.claims import BIND_COMPLETED, SELECTED_NODE
from kdsl.cluster.storage.volume_plan import Binding, VolumePlan
from kdsl.hooks.status import Code, Status
from kdsl.live.watching.changes import LiveNode
from kdsl.live.watching.decode import MalformedError, ObjectDecoder
from kdsl.live.watching.resources import RESOURCES
from kdsl.live.writing import bodies
from kdsl.live.writing.api import Api
from kdsl.live.writing.bodies import JsonObject
from kdsl.live.writing.claim_waits import Check, StoppedError, Waits
from kdsl.live.writing.outcomes import Done, Refused, Result, message_of
from kdsl.live.writing.retries import repeated, updated

TIMEOUT: Final = 600.0


class _VolumeError(Exception):
    """The volumes cannot be bound."""


class Volumes:
    """Applies plans of volumes through the API server, for the thread of the event loop.

    `node_of` returns the present node of a name.
    """

    def __init__(
        self,
        api: Api,
        waits: Waits,
        node_of: Callable[[str], LiveNode | None],
        timeout: float = TIMEOUT,
    ) -> None:
        self._api, self._waits, self._node_of, self._timeout = api, waits, node_of, timeout
        self._decoder = ObjectDecoder(RESOURCES["persistentvolumes"])

    async def bind(self, plan: VolumePlan, pod: str) -> Status | None:
        """Bind the volumes of a plan for the pod with the uid `pod`; return None on success, else an ERROR.

        It may be cancelled at any time. Changes on the server then stay, as in kube-scheduler.
        """
        try:
            await self._bind(plan, pod)
        except (_VolumeError, StoppedError) as error:
            return Status(Code.ERROR, (f"binding volumes: {error}",))
        return None

    async def _bind(self, plan: VolumePlan, pod: str) -> None:
        checks: dict[str, Check] = {}
        claims = (*[binding.claim for binding in plan.bindings], *plan.provisions)
        with self._waits.listening(pod, map(_key, claims)) as changed:
            for binding in plan.bindings:
                check: Check = partial(self._is_joined, binding, plan.node)
                if await self._set_aside(binding) or not await check():
                    checks[_key(binding.claim)] = check
            for claim in plan.provisions:
                check = partial(self._is_made, claim, plan.node)
                if await self._select(claim, plan.node) or not await check():
                    checks[_key(claim)] = check
            await self._waits.settle(pod, checks, self._timeout, changed)
        if checks:
            names = ", ".join(f'"{key.partition("/")[2]}"' for key in checks)
            raise _VolumeError(f"not bound within {self._timeout:g} s: {names}")

    async def _set_aside(self, binding: Binding) -> bool:
        """Reserve a volume for its claim; return False if the claim is bound already."""
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

        _done(await updated(lambda: self._api.read_volume(name), change, self._api.update_volume))
        return True

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> bool:
        """Request a volume for the claim near a node; return False if it is bound already."""
        meta = claim.metadata

        def change(found: JsonObject) -> JsonObject | None:
            _check_same(found, claim)
            has_node = _is_bound(found) or _annotations(found).get(SELECTED_NODE) == node
            return None if has_node else bodies.selected(found, node)

        found = await updated(
            lambda: self._api.read_claim(meta.namespace, meta.name), change, self._api.update_claim
        )
        return not _is_bound(_done(found))

    async def _is_joined(self, binding: Binding, node: str) -> bool:
        """Return whether claim and volume are bound; raise if the volume is no longer reserved."""
        self._labels_of(node)
        claim = await self._claim(binding.claim)
        if claim is None or _is_bound(claim):
            return claim is not None and await self._is_in_reach(claim, node)
        name = binding.volume.metadata.name
        volume = await self._api.read_volume(name)
        if isinstance(volume, Done) and not _reference(volume.value).get("uid"):
            raise _VolumeError(f'ClaimRef got reset for pv "{name}"')
        return False

    async def _is_made(self, wanted: PersistentVolumeClaim, node: str) -> bool:
        """Return whether a claim has its volume; raise if its node was removed."""
        self._labels_of(node)
        claim = await self._claim(wanted)
        if claim is None or _is_bound(claim):
            return claim is not None and await self._is_in_reach(claim, node)
        if _annotations(claim).get(SELECTED_NODE) != node:
            raise _VolumeError(f'selectedNode annotation reset for PVC "{wanted.metadata.name}"')
        return False

    async def _is_in_reach(self, claim: JsonObject, node: str) -> bool:
        """Return whether the volume of a bound claim is known; raise if the node cannot reach it.

        The claim may have got another volume than the planned one.
        """
        name = claim["spec"]["volumeName"]
        found = await repeated(lambda: self._api.read_volume(name))
        if not isinstance(found, Done):
            return False
        raw = encode(found.value)
        try:
            volume = self._decoder.decode(raw, self._decoder.identify(raw))
        except MalformedError as error:
            raise _VolumeError(str(error)) from None
        assert isinstance(volume, PersistentVolume)
        if not VolumeInfo.of(volume).can_be_used_on(self._labels_of(node)):
            why = f'node affinity doesn\'t match node "{node}": no matching NodeSelectorTerms'
            raise _VolumeError(f'pv "{name}" {why}')
        return True

    def _labels_of(self, node: str) -> Mapping[str, str]:
        """Return the labels of a node; raise if it is gone."""
        found = self._node_of(node)
        if found is None:
            raise _VolumeError(f'failed to get node "{node}": node "{node}" not found')
        return found.facts.labels

    async def _claim(self, wanted: PersistentVolumeClaim) -> JsonObject | None:
        """Return the present claim, None without an answer; raise if it is gone."""
        meta = wanted.metadata
        found = await repeated(lambda: self._api.read_claim(meta.namespace, meta.name))
        if isinstance(found, Done):
            _check_same(found.value, wanted)
            return found.value
        if isinstance(found, Refused) and found.is_gone:
            raise _VolumeError(message_of(found))
        return None


def _done(result: Result[JsonObject]) -> JsonObject:
    """Return the object of an update; raise if that failed."""
    if not isinstance(result, Done):
        raise _VolumeError(message_of(result))
    return result.value


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
    """Return whether a volume's reference is to the claim; one without uid was written by a person."""
    meta = claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return same and reference.get("uid") in (None, "", meta["uid"])


def _is_bound(claim: JsonObject) -> bool:
    return bool((claim.get("spec") or {}).get("volumeName")) and BIND_COMPLETED in _annotations(claim)
