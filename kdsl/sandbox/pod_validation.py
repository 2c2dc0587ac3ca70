"""What makes a pod's spec invalid: containers, resources, selectors, tolerations."""

from __future__ import annotations

import json
import re
from typing import Final

from kdsl.base.quantity import parse_quantity
from kdsl.sandbox.errors import Causes, Json

QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
NAME_PART: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_RESTART: Final = ("Always", "OnFailure", "Never")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_pod(spec: Json, causes: Causes, path: str = "spec") -> None:
    """Say what is not valid in a pod's spec, which `path` leads to."""
    containers = spec.get("containers", ())
    if not containers:
        causes.required(f"{path}.containers")
    names: set[str] = set()
    for listed in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(listed, ())):
            _check_container(container, f"{path}.{listed}[{index}]", names, causes)
    if spec.get("restartPolicy", "Always") not in _RESTART:
        causes.unsupported(f"{path}.restartPolicy", json.dumps(spec["restartPolicy"]), _RESTART)
    for key in spec.get("nodeSelector", ()):
        if not QUALIFIED.fullmatch(key.rpartition("/")[2]):
            causes.invalid(f"{path}.nodeSelector", json.dumps(key), NAME_PART)
    for index, toleration in enumerate(spec.get("tolerations", ())):
        _check_toleration(toleration, f"{path}.tolerations[{index}]", causes)
    _check_spreading(spec, path, causes)


def _check_container(container: Json, path: str, names: set[str], causes: Causes) -> None:
    name = container.get("name", "")
    if not name:
        causes.required(f"{path}.name")
    if not container.get("image"):
        causes.required(f"{path}.image")
    resources = container.get("resources", {})
    limits = resources.get("limits", {})
    for resource, amount in resources.get("requests", {}).items():
        limit = limits.get(resource)
        if limit is not None and parse_quantity(amount) > parse_quantity(limit):
            detail = f"must be less than or equal to {resource} limit of {limit}"
            causes.invalid(f"{path}.resources.requests", json.dumps(amount), detail)
        if parse_quantity(amount).nanos < 0:
            causes.invalid(
                f"{path}.resources.requests[{resource}]",
                json.dumps(amount),
                "must be greater than or equal to 0",
            )
    if name and name in names:
        causes.duplicate(f"{path}.name", json.dumps(name))
    names.add(name)


def _check_toleration(toleration: Json, path: str, causes: Causes) -> None:
    operator, value = toleration.get("operator", "Equal"), toleration.get("value", "")
    if operator == "Exists" and value:
        causes.invalid(
            f"{path}.operator", json.dumps(value), "value must be empty when `operator` is 'Exists'"
        )
    elif not toleration.get("key") and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.invalid(f"{path}.operator", json.dumps(operator), detail)
    if toleration.get("effect") and toleration["effect"] not in _EFFECTS:
        causes.unsupported(f"{path}.effect", json.dumps(toleration["effect"]), _EFFECTS)


def _check_spreading(spec: Json, path: str, causes: Causes) -> None:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        where = f"{path}.topologySpreadConstraints[{index}]"
        if constraint["maxSkew"] <= 0:
            causes.invalid(f"{where}.maxSkew", str(constraint["maxSkew"]), "must be greater than zero")
        if not constraint.get("topologyKey"):
            causes.required(f"{where}.topologyKey", "can not be empty")
        if constraint.get("whenUnsatisfiable") not in ("DoNotSchedule", "ScheduleAnyway"):
            given = json.dumps(constraint.get("whenUnsatisfiable", ""))
            causes.unsupported(f"{where}.whenUnsatisfiable", given, ("DoNotSchedule", "ScheduleAnyway"))
