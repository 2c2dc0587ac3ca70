"""Priorities of pods from files that never passed the API server, which takes them from PriorityClasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.read.codes import InputCode

PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")

# Priorities have 32 bits.
_LARGEST: Final = 2**31 - 1
_ADMIT: Final = "`kubectl create --dry-run=server -o json -f FILE` prints pods as the API server stores them"


class PriorityClass(Struct, frozen=True, rename="camel"):
    """The priority of a class, and whether its pods may preempt others."""

    value: int
    preemption_policy: str | None = None
    global_default: bool | None = None


_SYSTEM: Final = {
    "system-cluster-critical": PriorityClass(2_000_000_000),
    "system-node-critical": PriorityClass(2_000_001_000),
}


class _Newcomer(Struct, frozen=True):
    """The classes that a pod without a priority names, and whether it says itself if it preempts."""

    priority: str
    runtime: str
    has_policy: bool


class PodClasses(Struct):
    """The PriorityClasses of the input, by name, and the pods without a priority, by their index."""

    known: dict[str, PriorityClass] = field(default_factory=lambda: dict(_SYSTEM))
    newcomers: dict[int, _Newcomer] = field(default_factory=dict)

    def add(self, raw: Mapping[str, Any]) -> bool:
        """Add a PriorityClass; return False if it has no name or no priority."""
        name = meta.get("name") if isinstance(meta := raw.get("metadata"), dict) else None
        try:
            found = msgspec.convert(raw, PriorityClass)
        except msgspec.ValidationError:
            return False
        if not isinstance(name, str) or not -_LARGEST <= found.value <= _LARGEST:
            return False
        self.known[name] = found
        return True

    def note(self, at: int, spec: Mapping[str, Any]) -> None:
        """Remember the pod with this spec, as it is written, if the API server has not set its priority."""
        if spec.get("priority") is None:
            priority = spec.get("priorityClassName")
            runtime = None if spec.get("overhead") else spec.get("runtimeClassName")
            has_policy = bool(spec.get("preemptionPolicy"))
            self.newcomers[at] = _Newcomer(str(priority or ""), str(runtime or ""), has_policy)

    def priorities(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the fields that the API server would set in the specs of pods, with the index of each."""
        default = next((each for each in self.known.values() if each.global_default), None)
        for at, pod in self.newcomers.items():
            found = self.known.get(pod.priority) if pod.priority else default
            if found is not None:
                policy = found.preemption_policy
                more = {"preemptionPolicy": policy} if policy and not pod.has_policy else {}
                yield at, {"priority": found.value, **more}

    def problems(self) -> Iterator[Diagnostic]:
        """Warn about pods whose classes have no effect."""
        unknown = [each.priority for each in self.newcomers.values() if each.priority]
        unknown = [name for name in unknown if name not in self.known]
        if unknown:
            title = f"{_pods(len(unknown))} `priorityClassName` and no `priority`, which counts as 0"
            add = f"write `priority` in the pod, or add the PriorityClass `{unknown[0]}` to the input"
            yield _warning(title, add)
        runtimes = sum(1 for each in self.newcomers.values() if each.runtime)
        if runtimes:
            title = f"{_pods(runtimes)} `runtimeClassName`, but not what the API server takes from the class"
            yield _warning(title, "write the class's `overhead`, `nodeSelector` and `tolerations`", _ADMIT)


def with_fields(pod: Pod, fields: Mapping[str, Any]) -> Pod:
    """Return a pod with the fields of `priorities`."""
    policy = fields.get("preemptionPolicy", pod.spec.preemption_policy)
    return replace(pod, spec=replace(pod.spec, priority=fields["priority"], preemption_policy=policy))


def _pods(count: int) -> str:
    return "1 pod has a" if count == 1 else f"{count:,} pods have a"


def _warning(title: str, *help_: str) -> Diagnostic:
    return Diagnostic(InputCode.INCOMPLETE, title, severity=Severity.WARNING, help=help_)
