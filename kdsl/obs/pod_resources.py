"""`/metrics/resources`: requests and limits of every pod, as text in chunks.

Capacity dashboards read it. There is a line for each pod and resource; lines are generated while they are
sent, so none is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kdsl.base.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY
from kdsl.cluster.objects.pod import PodInfo

CHUNK: Final = 500
"""The number of pods in a chunk."""
_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE, "storage")
_FAMILIES: Final = (
    ("kube_pod_resource_request", "Resources that pods request, by pod. Unit is that of the resource."),
    ("kube_pod_resource_limit", "Resource limits of pods, by pod. Unit is that of the resource."),
)


def resource_lines(pods: Callable[[], Iterable[PodInfo]]) -> Iterator[str]:
    """Yield the exposition in chunks of text; finished `pods` are left out."""
    amounts: tuple[Callable[[PodInfo], Mapping[str, int]], ...] = (_requests, _limits)
    for (name, about), amounts_of in zip(_FAMILIES, amounts, strict=True):
        yield f"# HELP {name} [STABLE] {about}\n# TYPE {name} gauge\n"
        lines: list[str] = []
        for at, pod in enumerate(pods()):
            if not pod.is_finished:
                lines += _lines(name, pod, amounts_of(pod))
            if at % CHUNK == CHUNK - 1:
                yield "".join(lines)
                lines = []
        yield "".join(lines)


def _lines(name: str, pod: PodInfo, amounts: Mapping[str, int]) -> Iterator[str]:
    of_pod = (
        f'{name}{{namespace="{_quoted(pod.namespace)}",pod="{_quoted(pod.name)}",node="{_quoted(pod.node_name)}",'
        f'scheduler="{_quoted(pod.scheduler_name)}",priority="{pod.priority}"'
    )
    for resource, amount in amounts.items():
        value = f"{amount / 1000:g}" if resource == CPU else str(amount)
        yield f'{of_pod},resource="{_quoted(resource)}",unit="{_unit(resource)}"}} {value}\n'


def _requests(pod: PodInfo) -> Mapping[str, int]:
    return pod.requests.amounts()


def _limits(pod: PodInfo) -> Mapping[str, int]:
    """Return the limits of a pod: the sum over containers, the largest init container if that is more, and
    the overhead of limited resources, as in kube-scheduler.
    """
    found: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in pod.containers:
        _add(found, container.limits.amounts())
    largest: dict[str, int] = {}
    for container in pod.init_containers:
        own = container.limits.amounts()
        if container.restart_policy == "Always":
            _add(found, own)
            _add(sidecars, own)
            at_once = sidecars
        else:
            at_once = {name: own.get(name, 0) + sidecars.get(name, 0) for name in {*own, *sidecars}}
        for name, amount in at_once.items():
            largest[name] = max(largest.get(name, 0), amount)
    for name, amount in largest.items():
        found[name] = max(found.get(name, 0), amount)
    for name, amount in pod.overhead.amounts().items():
        if name in found:
            found[name] += amount
    return found


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _unit(resource: str) -> str:
    if resource == CPU:
        return "cores"
    if resource in _BYTES or resource.startswith(HUGE_PAGES):
        return "bytes"
    return "integer"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
