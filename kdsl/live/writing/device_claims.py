"""Writes the claims of devices before their pod is bound: the allocation, and the pod as a user.

A claim is read, changed and written, and read again after a conflict. Error texts are kube-scheduler's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import to_builtins
from msgspec.json import encode

from kdsl.base.clock import Clock
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.times import to_seconds
from kdsl.cluster.api.device_objects import Allocation, ResourceClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.decode import decode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan, Reservation
from kdsl.cluster.resource_claims.extended_claims import name_prefix
from kdsl.cluster.resource_claims.readiness import READY_TIMEOUT, NotUsableError, is_late, is_ready
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.hooks.status import Code, Status
from kdsl.live.http.lanes import Lane
from kdsl.live.writing.api import Api
from kdsl.live.writing.bodies import JsonObject, status_patch
from kdsl.live.writing.claim_waits import Check, StoppedError, Waits
from kdsl.live.writing.outcomes import Done, Refused, Result, message_of
from kdsl.live.writing.retries import repeated, updated

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_OF_ALLOCATION: Final = ("allocation", "reservedFor", "devices")
"""The fields of a status that go with the allocation."""
_OPAQUE: Final = "parameters"
"""The field whose content is the driver's."""


class _ClaimError(Exception):
    """The claim cannot be written."""


class ClaimNotes(NamedTuple):
    """The functions to call with the key of a reservation: once its claim is `written`, also with the new
    version, and once it is `created`, also with the key of the claim.
    """

    written: Callable[[str, str], None]
    created: Callable[[str, str], None]


class DeviceClaims:
    """Executes plans of claims through the API server, for the thread of the event loop.

    `notes` are called for the claims that are on the server.
    """

    def __init__(self, api: Api, clock: Clock, waits: Waits, notes: ClaimNotes) -> None:
        self._api, self._clock, self._waits, self._notes = api, clock, waits, notes

    async def write(self, plan: ClaimPlan) -> Status | None:
        """Write the claims of a plan one after the other; return None on success, else an ERROR.

        It may be cancelled at any time; `plan.written` and `plan.created` have the claims on the server.
        """
        claims = list(plan.held)
        # An error gets the pod another attempt, which takes away devices that do not get ready.
        try:
            for reservation in plan.reservations:
                claims.append(await self._written_claim(reservation, plan))
            await self._wait_until_ready(claims, plan.user.uid)
        except (NotUsableError, StoppedError, _ClaimError) as error:
            return Status(Code.ERROR, (str(error),))
        return None

    async def _written_claim(self, reservation: Reservation, plan: ClaimPlan) -> ResourceClaim:
        """Write a claim of a plan, which is created first where the plan says so; return it."""
        if not reservation.mappings:
            found = await self._write(reservation, plan)
            plan.written.add(reservation.key)
            self._notes.written(reservation.key, _version_of(found))
            return plan.changed(reservation)
        claim = plan.created[reservation.key] = await self._create(reservation)
        self._notes.created(reservation.key, key_of(claim))
        named = Reservation(claim, reservation.allocation)
        self._notes.written(reservation.key, _version_of(await self._write(named, plan)))
        await self._write_pod_status(reservation, claim, plan)
        return plan.changed(named)

    async def _create(self, reservation: Reservation) -> ResourceClaim:
        """Create the claim of a pod's extended resources; it is not tried again, since it may be there."""
        body = encode(_new_body(reservation.claim))
        namespace = reservation.claim.metadata.namespace
        found = await self._api.create_device_claim(namespace, body)
        return _decoded(_done(found, "create claim for extended resources", f"{namespace}/"))

    async def _write_pod_status(
        self, reservation: Reservation, claim: ResourceClaim, plan: ClaimPlan
    ) -> None:
        """Write into the pod's status which request gives devices to which container."""
        pod = PodInfo(plan.user.name, claim.metadata.namespace, plan.user.uid)
        mappings = [
            {"containerName": each.container, "resourceName": each.resource, "requestName": each.request}
            for each in reservation.mappings
        ]
        status = {"requestMappings": mappings, "resourceClaimName": claim.metadata.name}
        patch = status_patch(pod.uid, {"extendedResourceClaimStatus": status})
        found = await repeated(lambda: self._api.patch_status(pod, patch, Lane.BIND))
        if not isinstance(found, Done):
            text = f"update pod {pod.key} ExtendedResourceClaimStatus: {message_of(found)}"
            raise _ClaimError(text)

    async def _wait_until_ready(self, claims: Iterable[ResourceClaim], pod: str) -> None:
        """Wait until drivers report the binding conditions of the claims' devices, ten minutes at most."""
        checks: dict[str, Check] = {}
        # Devices without conditions are ready at once.
        waiting = [claim for claim in claims if not is_ready(claim)]
        with self._waits.listening(pod, map(key_of, waiting)) as changed:
            for claim in waiting:
                if not await self._is_ready(claim):
                    checks[key_of(claim)] = partial(self._is_ready, claim)
            await self._waits.settle(pod, checks, READY_TIMEOUT, changed)
        if checks:
            raise _ClaimError("device binding timeout")

    async def _is_ready(self, claim: ResourceClaim) -> bool:
        """Return whether the devices of a claim are ready on the server; raise if they come too late."""
        present = await self._present(claim)
        if is_ready(present):
            return True
        if is_late(present, self._clock.now()):
            raise _ClaimError(f"claim {claim.metadata.name} binding timeout")
        return False

    async def _present(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim as the server has it, or the given one if the server does not answer."""
        meta = claim.metadata
        found = await repeated(lambda: self._api.read_device_claim(meta.namespace, meta.name))
        return _decoded(_checked(found, claim)) if isinstance(found, Done) else claim

    async def release(self, claim: ResourceClaim, uid: str) -> Status | None:
        """Remove a pod from the users of a claim, unless the claim was created anew."""
        meta = claim.metadata
        patch = encode(
            {"metadata": {"uid": meta.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]}}
        )
        found = await repeated(lambda: self._api.patch_device_claim(meta.namespace, meta.name, patch))
        return None if isinstance(found, Done) else Status(Code.ERROR, (message_of(found),))

    async def deallocate(self, claim: ResourceClaim) -> Status | None:
        """Take the devices away from a claim that has no user but those of `claim`."""
        users = {user.uid for user in claim.status.reserved_for}

        def change(found: JsonObject) -> JsonObject:
            status = found.get("status") or {}
            if any(user.get("uid") not in users for user in status.get("reservedFor") or ()):
                raise _ClaimError("the claim has another user by now")
            kept = {name: value for name, value in status.items() if name not in _OF_ALLOCATION}
            return {**found, "status": kept}

        try:
            await self._update_status(claim, change, "deallocate claim")
        except _ClaimError as error:
            return Status(Code.ERROR, (str(error),))
        return None

    async def delete(self, claim: ResourceClaim) -> Status | None:
        """Delete a claim that was created for a pod, with its devices."""
        meta = claim.metadata
        read = partial(self._api.read_device_claim, meta.namespace, meta.name)
        found = await updated(read, _unprotected, self._api.update_device_claim)
        if isinstance(found, Done):
            uid = found.value["metadata"].get("uid", "")
            deleted = await repeated(lambda: self._api.delete_device_claim(meta.namespace, meta.name, uid))
            failure = None if isinstance(deleted, Done) else deleted
        else:
            failure = found
        if failure is None or (isinstance(failure, Refused) and failure.is_gone):
            return None
        return Status(Code.ERROR, (f"delete claim {key_of(claim)}: {message_of(failure)}",))

    async def _write(self, reservation: Reservation, plan: ClaimPlan) -> JsonObject:
        """Write the allocation and the user of a claim; return the claim.

        A claim that is allocated gets the finalizer first: it must not vanish while its devices are in use.
        """
        claim, user = reservation.claim, _without_empty(to_builtins(plan.user))
        wanted = reservation.allocation or claim.status.allocation

        def change(found: JsonObject) -> JsonObject | None:
            status = dict(found.get("status") or {})
            users = status.get("reservedFor") or ()
            present = _decoded(found).status.allocation
            is_same = present is not None and _places(present) == _places(wanted)
            if is_same and any(each.get("uid") == user["uid"] for each in users):
                return None  # an earlier try, whose answer was lost
            if present is not None and (reservation.allocation is not None or not is_same):
                raise _ClaimError(f"claim {reservation.key} got allocated elsewhere in the meantime")
            if reservation.allocation is not None:
                status["allocation"] = self._body_of(reservation.allocation)
            elif present is None:
                raise _ClaimError(f"claim {reservation.key} got deallocated in the meantime")
            status["reservedFor"] = [*users, user]
            return {**found, "status": status}

        if reservation.allocation is None:
            return await self._update_status(claim, change, "add reservation to claim")
        result = await updated(partial(self._read, claim), _protected, self._api.update_device_claim)
        present = _done(result, "add finalizer to claim", reservation.key)
        return await self._update_status(claim, change, "add allocation and reservation to claim", present)

    async def _update_status(
        self,
        claim: ResourceClaim,
        change: Callable[[JsonObject], JsonObject | None],
        action: str,
        present: JsonObject | None = None,
    ) -> JsonObject:
        """Change the status of a claim, see `updated`; return the claim."""
        write = partial(self._api.update_device_claim, subresource="status")
        return _done(await updated(partial(self._read, claim), change, write, present), action, key_of(claim))

    async def _read(self, claim: ResourceClaim) -> Result[JsonObject]:
        """Read the present state of a claim; raise if it cannot be read, or is gone."""
        meta = claim.metadata
        found = await repeated(lambda: self._api.read_device_claim(meta.namespace, meta.name))
        return Done(_checked(found, claim))

    def _body_of(self, allocation: Allocation) -> JsonObject:
        body: JsonObject = _without_empty(to_builtins(allocation))
        return {**body, "allocationTimestamp": to_seconds(self._clock.now())}


def _decoded(found: JsonObject) -> ResourceClaim:
    """Return a claim of the server, in which null stands for an absent field; raise if it is none."""
    problems: list[Diagnostic] = []
    claim = decode(msgspec.json.decode(encode(found)), ResourceClaim, Problems(problems, "the claim"))
    if claim is None:
        raise _ClaimError("; ".join(f"{each.where}: {each.title}" for each in problems))
    return claim


def _done(result: Result[JsonObject], action: str, key: str) -> JsonObject:
    """Return the claim of an update; raise if that failed."""
    if not isinstance(result, Done):
        raise _ClaimError(f"{action} {key}: {message_of(result)}")
    return result.value


def _checked(found: Result[JsonObject], claim: ResourceClaim) -> JsonObject:
    """Return a claim that was read, if it is the same one and is not being deleted."""
    if not isinstance(found, Done):
        raise _ClaimError(message_of(found))
    meta = found.value["metadata"]
    if meta.get("deletionTimestamp") or meta.get("uid") != claim.metadata.uid:
        raise _ClaimError(f"claim {key_of(claim)} got deleted in the meantime")
    return found.value


def _places(allocation: Allocation | None) -> object:
    """Return the devices of an allocation and the nodes that can use them."""
    if allocation is None:
        return None
    results = allocation.devices.results
    return [(one.request, one.driver, one.pool, one.device) for one in results], allocation.node_selector


def _protected(claim: JsonObject) -> JsonObject | None:
    """Return a claim with the finalizer, None if it has it."""
    meta = claim["metadata"]
    finalizers = meta.get("finalizers") or []
    if FINALIZER in finalizers:
        return None
    return {**claim, "metadata": {**meta, "finalizers": [*finalizers, FINALIZER]}}


def _unprotected(claim: JsonObject) -> JsonObject | None:
    """Return a claim without the finalizer, None if it has none."""
    meta = claim["metadata"]
    finalizers = meta.get("finalizers") or []
    if FINALIZER not in finalizers:
        return None
    return {**claim, "metadata": {**meta, "finalizers": [each for each in finalizers if each != FINALIZER]}}


def _new_body(claim: ResourceClaim) -> JsonObject:
    """Return a claim as it is created: the server completes its name."""
    meta = claim.metadata
    body: JsonObject = _without_empty(
        to_builtins(
            {
                "metadata": {
                    "generateName": name_prefix(claim),
                    "namespace": meta.namespace,
                    "annotations": meta.annotations,
                    "ownerReferences": meta.owner_references,
                },
                "spec": claim.spec,
            }
        )
    )
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **body}


def _version_of(claim: JsonObject) -> str:
    version: str = claim["metadata"].get("resourceVersion", "")
    return version


def _without_empty(value: Any) -> Any:
    """Return JSON without empty fields, which the API leaves out; parameters of drivers stay as they are."""
    if isinstance(value, dict):
        fields = {name: field if name == _OPAQUE else _without_empty(field) for name, field in value.items()}
        return {name: field for name, field in fields.items() if field not in (None, "", [], {}, False)}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value
