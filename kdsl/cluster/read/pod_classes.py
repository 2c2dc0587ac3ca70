"""Priorities of pods from files that never passed the API server, which takes them from PriorityClasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.cluster.api.objects import ObjectMeta, Pod
from kdsl.cluster.objects.pod import PREEMPT_LOWER
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.decode import decode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.validate import check_preemption_policy, check_priority

PRIORITY_CLASS: Final = ("scheduling.k8s.io/v1", "PriorityClass")

_ADMIT: Final = "`kubectl create --dry-run=server -o json -f FILE` prints pods as the API server stores them"


class PriorityClass(Struct, frozen=True, rename="camel"):
    """The priority of a class, and whether its pods may preempt others."""

    metadata: ObjectMeta = ObjectMeta()
    value: int | None = None
    preemption_policy: str = ""
    global_default: bool = False

    @property
    def rank(self) -> dict[str, Any]:
        """Return the fields that a pod of this class gets."""
        return {"priority": self.value, "preemptionPolicy": self.preemption_policy or PREEMPT_LOWER}


_SYSTEM: Final = {
    "system-cluster-critical": PriorityClass(value=2_000_000_000),
    "system-node-critical": PriorityClass(value=2_000_001_000),
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

    def add(self, raw: Mapping[str, Any], problems: Problems) -> None:
        """Add a PriorityClass, or report its mistakes, among them other values than the first one has."""
        found = decode(raw, PriorityClass, problems)
        if found is None:
            return
        name, value = found.metadata.name, found.value
        if not name or value is None:
            problems.add(InputCode.MISSING, (), "a priority class needs a name and a number (`value`)")
            return
        first = self.known.get(name)
        if first is not None and name not in _SYSTEM and _is_other(found, first):
            title = f"a second PriorityClass is named `{name}`, with other values"
            problems.add(InputCode.DUPLICATE_OBJECT, (), title, "remove one of them")
            return
        check_priority(value, ("value",), problems)
        check_preemption_policy(found.preemption_policy, ("preemptionPolicy",), problems)
        if not problems.paths:
            self.known[name] = found

    def note(self, at: int, spec: Mapping[str, Any]) -> None:
        """Remember the pod with this spec, as it is written, if the API server has not set its priority."""
        if spec.get("priority") is None:
            priority = spec.get("priorityClassName")
            runtime = None if spec.get("overhead") else spec.get("runtimeClassName")
            has_policy = bool(spec.get("preemptionPolicy"))
            self.newcomers[at] = _Newcomer(str(priority or ""), str(runtime or ""), has_policy)

    def priorities(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the fields that the API server would set in the specs of pods, with the index of each."""
        # Of several defaults the API server takes the lowest.
        defaults = [each for each in self.known.values() if each.global_default]
        default = min(defaults, key=lambda each: each.value or 0, default=None)
        for at, pod in self.newcomers.items():
            found = self.known.get(pod.priority) if pod.priority else default
            if found is not None:
                rank = found.rank
                if pod.has_policy:
                    del rank["preemptionPolicy"]
                yield at, rank

    def rank_of(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that the API server would set in this spec; empty if it would set none."""
        lone = PodClasses(self.known)
        lone.note(0, spec)
        return next((fields for _, fields in lone.priorities()), {})

    def problems(self) -> Iterator[Diagnostic]:
        """Warn about pods whose classes have no effect."""
        unknown = [each.priority for each in self.newcomers.values() if each.priority]
        unknown = [name for name in unknown if name not in self.known]
        if unknown:
            title = f"{_pods(len(unknown))} `priorityClassName` and no `priority`, which counts as 0"
            add = f"or add the PriorityClass `{unknown[0]}` to the input: the priority is taken from it"
            yield _warning(title, "write `priority` in the pod", add)
        runtimes = sum(1 for each in self.newcomers.values() if each.runtime)
        if runtimes:
            title = f"{_pods(runtimes)} `runtimeClassName`, but not what the API server takes from the class"
            yield _warning(title, "write the class's `overhead`, `nodeSelector` and `tolerations`", _ADMIT)


def with_fields(pod: Pod, fields: Mapping[str, Any]) -> Pod:
    """Return a pod with the fields of `priorities`."""
    policy = fields.get("preemptionPolicy", pod.spec.preemption_policy)
    return replace(pod, spec=replace(pod.spec, priority=fields["priority"], preemption_policy=policy))


def _is_other(one: PriorityClass, other: PriorityClass) -> bool:
    return one.rank != other.rank or one.global_default != other.global_default


def _pods(count: int) -> str:
    return "1 pod has a" if count == 1 else f"{count:,} pods have a"


def _warning(title: str, *help_: str) -> Diagnostic:
    return Diagnostic(InputCode.INCOMPLETE, title, severity=Severity.WARNING, help=help_)
