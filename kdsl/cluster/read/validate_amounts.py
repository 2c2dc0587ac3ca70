"""Checks of resource names and quantities; part of `validate`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kdsl.base.diagnostic import did_you_mean
from kdsl.base.paths import Path
from kdsl.base.quantity import Quantity
from kdsl.base.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY, canonical, is_native
from kdsl.cluster.api.objects import (
    Container,
    Node,
    Pod,
    ResourceList,
    ResourceRequirements,
    WrittenQuantity,
    quantity,
)
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems

# Requests are summed, and converted to doubles: 2^53 bytes are 8 PiB, and the sum for a thousand such pods
# still fits into int64.
MAX_REQUEST: Final = 2**53

CONTAINER_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_POD_LEVEL_RESOURCES: Final = (CPU, MEMORY)


def check_container_amounts(container: Container, path: Path, problems: Problems) -> None:
    """Check names and amounts of a container's requests and limits."""
    place = (*path, "resources")
    _check_pair(container.resources, CONTAINER_RESOURCES, place, problems)


def check_pod_amounts(pod: Pod, problems: Problems) -> None:
    """Check overhead, pod-level resources and the amounts that status reports for a resize."""
    spec, status = pod.spec, pod.status
    _check_requests(spec.overhead, CONTAINER_RESOURCES, ("spec", "overhead"), problems)
    _check_pair(spec.resources, _POD_LEVEL_RESOURCES, ("spec", "resources"), problems)
    for field, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for i, one in enumerate(statuses):
            _check_status(one.resources, one.allocated_resources, ("status", field, i), problems)
    _check_status(status.resources, status.allocated_resources, ("status",), problems)


def check_node_amounts(node: Node, problems: Problems) -> None:
    """Check the amounts that a node reports. They may be as large as int64, since they are never summed."""
    status = node.status
    for field, amounts in (("allocatable", status.allocatable or {}), ("capacity", status.capacity)):
        for name, written in amounts.items():
            path = ("status", field, name)
            amount = _read(name, written, path, problems)
            if amount is not None:
                try:
                    canonical(name, amount)
                except OverflowError as error:
                    problems.add(InputCode.QUANTITY, path, str(error))


def check_amount(written: WrittenQuantity | None, path: Path, problems: Problems) -> None:
    """Check a quantity that is not one of a resource; None where it is not written."""
    if written is not None:
        _read("", written, path, problems)


def _check_pair(
    resources: ResourceRequirements, known: tuple[str, ...], path: Path, problems: Problems
) -> None:
    requests = _check_requests(resources.requests, known, (*path, "requests"), problems)
    limits = _check_requests(resources.limits, known, (*path, "limits"), problems)
    for name, request in requests.items():
        if name in limits and request > limits[name]:
            title = f"request `{request}` is above the limit `{limits[name]}`"
            problems.add(InputCode.QUANTITY, (*path, "requests", name), title)


def _check_status(
    resources: ResourceRequirements | None, allocated: ResourceList, path: Path, problems: Problems
) -> None:
    if resources is not None:
        _check_requests(resources.requests, None, (*path, "resources", "requests"), problems)
    _check_requests(allocated, None, (*path, "allocatedResources"), problems)


def _check_requests(
    amounts: ResourceList, known: tuple[str, ...] | None, path: Path, problems: Problems
) -> dict[str, Quantity]:
    """Check requests and return those that can be parsed; `known` are the resource names without a domain."""
    readable: dict[str, Quantity] = {}
    for name, written in amounts.items():
        place = (*path, name)
        if known is not None:
            _check_name(name, known, place, problems)
        amount = _read(name, written, place, problems)
        if amount is not None:
            readable[name] = amount
            _check_request(name, amount, place, problems)
    return readable


def _read(name: str, written: WrittenQuantity, path: Path, problems: Problems) -> Quantity | None:
    """Return an amount of a resource, or of no resource; None, and a problem, if it cannot be parsed."""
    try:
        amount = quantity(written)
    except ValueError as error:
        problems.add(InputCode.QUANTITY, path, str(error))
        return None
    if amount.nanos < 0:
        of = f" of `{name}`" if name else ""
        problems.add(InputCode.QUANTITY, path, f"`{amount}`{of} is negative")
    return amount


def _check_request(name: str, amount: Quantity, path: Path, problems: Problems) -> None:
    has_whole_units = name.startswith(HUGE_PAGES) or not is_native(name)
    if has_whole_units and not amount.is_integer:
        problems.add(InputCode.QUANTITY, path, f"`{amount}` of `{name}` is not a whole number")
    limit = MAX_REQUEST // 1000 if name == CPU else MAX_REQUEST
    if amount.value() > limit:
        title = f"a request for `{amount}` of `{name}` is too large to be added up"
        problems.add(InputCode.QUANTITY, path, title, f"the largest request is {limit}")


def _check_name(name: str, known: tuple[str, ...], path: Path, problems: Problems) -> None:
    if name in known or name.startswith(HUGE_PAGES):
        return
    if known is _POD_LEVEL_RESOURCES:
        title = f"`{name}` cannot be asked for at pod level"
        problems.add(
            InputCode.VALUE, path, title, "pod-level resources are `cpu`, `memory` and `hugepages-…`"
        )
        return
    problem = problem_of_resource(name, known)
    if problem is not None:
        problems.add(InputCode.VALUE, path, *problem)


def problem_of_resource(name: str, known: Collection[str] = CONTAINER_RESOURCES) -> tuple[str, ...] | None:
    """Return the error in the name of a resource, with help; `known` are those without a domain."""
    if name in known or name.startswith(HUGE_PAGES) or "/" in name:
        return None
    help = did_you_mean(name, known) or ("resources of vendors have a domain, as in `nvidia.com/gpu`",)
    return f"unknown resource `{name}`", *help
