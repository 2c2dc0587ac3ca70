"""The webhook as in HAMi: selects pods for this scheduler, completes them, and denies invalid ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from kdsl.cluster.api.objects import Pod
from kdsl.cluster.devices.pods import DevicePod
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.eval.values import EvalError
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.patches import patch_of
from kdsl.extender.objects import UNUSABLE
from kdsl.extender.protocol import UnreadableError
from kdsl.plan.devices.device_error import one_line
from kdsl.plan.devices.plugin import BIND_PHASE, BIND_TIME, CHOSEN_AT, CHOSEN_NODE, DevicesPlugin
from kdsl.plan.router import DEFAULT_SCHEDULER

OTHER_SCHEDULER: Final = "pod already has different scheduler assigned"
_DENIED, _WRONG = 403, 500
_OURS: Final = (CHOSEN_NODE, CHOSEN_AT, BIND_PHASE, BIND_TIME)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a review: the operations on the pod, or with a `code` the reason of its denial.

    An allowed pod may have a `message`, too.
    """

    patch: tuple[dict[str, Any], ...] = ()
    message: str = ""
    code: int = 0


class Webhook:
    """Reviews new pods. For the scheduling thread, which has the quotas."""

    def __init__(self, devices: DevicesPlugin, cache: ClusterCache, options: HamiOptions) -> None:
        self._devices, self._cache, self._options = devices, cache, options
        self._ours = frozenset((*_OURS, *devices.records, *map(_to_allocate, devices.records)))

    def review(self, raw: dict[str, Any], pod: Pod, namespace: str) -> Verdict:
        """Review a pod: `raw` is its JSON, `pod` its decoded form, `namespace` its namespace.

        Raises UnreadableError.
        """
        if not pod.spec.containers:
            return Verdict(message="pod has no containers", code=_DENIED)
        forged = min(self._ours & pod.metadata.annotations.keys(), default="")
        if forged:
            return Verdict(message=f"annotation {forged} is the scheduler's to write", code=_DENIED)
        if self._is_of_others(pod.spec.scheduler_name):
            return Verdict(message=OTHER_SCHEDULER)
        runtime_class = str((raw.get("spec") or {}).get("runtimeClassName") or "")
        try:
            before = replace(DevicePod.of(pod), namespace=namespace, runtime_class=runtime_class)
        except UNUSABLE as error:
            raise UnreadableError(f"the pod cannot be used: {error}") from None
        try:
            reviewed = self._devices.review(before, self._cache.snapshot())
        except EvalError as error:
            return Verdict(message=one_line(error), code=_WRONG)
        refusal = reviewed.refusal.message if reviewed.refusal is not None else ""
        if reviewed.is_invalid:
            return Verdict(message=refusal, code=_WRONG)
        scheduler = self._options.scheduler_name if reviewed.uses_devices else ""
        # INVARIANT: the quota is checked last, so a pod beyond its quota has requests.
        if scheduler and pod.spec.node_name and (not refusal or reviewed.requests):
            return Verdict(message="pod has node assigned", code=_DENIED)
        if refusal:
            return Verdict(message=refusal, code=_DENIED)
        return Verdict(tuple(patch_of(raw, before, reviewed.pod, scheduler)))

    def _is_of_others(self, scheduler: str) -> bool:
        """Return whether a pod selects another scheduler."""
        ours = self._options.scheduler_name
        is_open = scheduler == DEFAULT_SCHEDULER and self._options.overwrites_default
        return bool(scheduler) and not is_open and (not ours or scheduler != ours)


def _to_allocate(record: str) -> str:
    """Return the annotation from which a device plugin reads the cards to allocate."""
    return record.replace("-allocated", "-to-allocate")
