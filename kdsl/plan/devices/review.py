"""The admission of a pod before it is scheduled: HAMi's admission webhook, as a function."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from kdsl.base.bounded_dict import BoundedDict
from kdsl.cluster.devices.pods import DevicePod, Phase
from kdsl.cluster.devices.quota import NO_QUOTA, Quota
from kdsl.hooks.status import Code, Status
from kdsl.plan.devices.admission import admit_pod
from kdsl.plan.devices.demand import DeviceRequest, Requests
from kdsl.plan.devices.facts import Parts, values_of
from kdsl.plan.devices.program import DeviceProgram, requests_of
from kdsl.plan.devices.reads import attributes_read

OVER_QUOTA = "exceeding resource quota"
_OWN: Final = ("name", "namespace", "uid", "labels", "requests")
"""The fields that admission does not change: pods of one review keep their own."""

MAX_REVIEWS: Final = 1024
"""The number of pod signatures whose reviews are kept."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A pod after admission and its requests, or the reason why it may not be created.

    `uses_devices` is that of `Admission`. `is_invalid`: a device refused the pod.
    """

    pod: DevicePod
    requests: Requests = ()
    refusal: Status | None = None
    uses_devices: bool = False
    is_invalid: bool = False

    @property
    def asks(self) -> bool:
        return any(self.requests)


class Reviews:
    """The reviews of pods, one for all pods of a signature."""

    def __init__(self, programs: Sequence[DeviceProgram]) -> None:
        self._programs = programs
        self._known = BoundedDict[Hashable, Reviewed](MAX_REVIEWS)

    @cached_property
    def _parts(self) -> Parts:
        read = attributes_read([expr for each in self._programs for expr in each.reviewing])
        # Admission adds to annotations and to the runtime class, so its result depends on them.
        return tuple([(name, None) for name in sorted(read | {"annotations", "runtime_class"})])

    def review(self, pod: DevicePod, quota: Quota, is_admitted: bool = False) -> Reviewed:
        """Return the review of a pod; EvalError as in `review`.

        A pod that a webhook has admitted is neither changed nor refused.
        """
        quota = NO_QUOTA if is_admitted else quota
        signature = (pod.containers, values_of(pod, self._parts), quota.signature, is_admitted)
        known = self._known.get(signature)
        if known is None:
            if is_admitted:
                known = Reviewed(pod, requests_of(self._programs, pod))
            else:
                known = review(self._programs, pod, quota)
            self._known.keep(signature, known)
        own = {name: getattr(pod, name) for name in _OWN}
        return replace(known, pod=replace(known.pod, **own))


def review(programs: Sequence[DeviceProgram], pod: DevicePod, quota: Quota) -> Reviewed:
    """Admit a pod; EvalError if an expression of a device has no value.

    A device may refuse the pod. A pod with devices and a privileged container, which sees all cards of a
    node, is refused, and so is a pod that would exceed a quota of its namespace.
    """
    admission = admit_pod([program.admit for program in programs], pod)
    pod, is_user = admission.pod, admission.uses_devices
    if admission.refusal:
        return Reviewed(pod, (), _refused(admission.refusal), is_user, is_invalid=True)
    requests = requests_of(programs, pod)
    privileged = next((each.name for each in pod.containers if each.is_privileged), None)
    if is_user and privileged is not None:
        return Reviewed(pod, (), _refused(f"container {privileged} is privileged"), is_user)
    if quota.limits and not _within(programs, pod, requests, quota):
        return Reviewed(pod, requests, Status(Code.UNSCHEDULABLE, (OVER_QUOTA,)), is_user)
    return Reviewed(pod, requests, None, is_user)


def _refused(reason: str) -> Status:
    return Status(Code.UNRESOLVABLE, (reason,))


def _within(programs: Sequence[DeviceProgram], pod: DevicePod, requests: Requests, quota: Quota) -> bool:
    """Return whether quotas leave room for the requested memory and compute; percentages count 0."""
    return all(
        quota.allows(
            program.quota_names,
            _most(program.kind, pod, requests, lambda request: request.memory * request.count),
            _most(program.kind, pod, requests, lambda request: request.cores * request.count),
        )
        for program in programs
        if any(program.kind in asked for asked in requests)
    )


def _most(kind: str, pod: DevicePod, requests: Requests, amount: Callable[[DeviceRequest], int]) -> int:
    """Return the larger of the sum over containers and the largest amount of an init container."""
    together = largest = 0
    for phase, asked in zip(pod.phases, requests, strict=True):
        if kind in asked:
            wanted = amount(asked[kind])
            if phase is Phase.APP:
                together += wanted
            else:
                largest = max(largest, wanted)
    return max(together, largest)
