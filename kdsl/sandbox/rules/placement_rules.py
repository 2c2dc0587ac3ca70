"""Validation of the parts of a pod's spec that restrict its node."""

from __future__ import annotations

import json
from typing import Final

from kdsl.sandbox.model import names
from kdsl.sandbox.model.errors import Causes, Json
from kdsl.sandbox.rules.label_keys import check_label_keys
from kdsl.sandbox.rules.metadata_rules import check_key, check_requirement, check_selector, say_all

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_OPERATORS: Final = ("Gt", "Lt")
_LISTS: Final = ("In", "NotIn")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NOT_EMPTY: Final = "can not be empty"
_POSITIVE: Final = "must be greater than zero"
_WEIGHT: Final = "must be in the range 1-100"


def check_affinity(affinity: Json, path: str, causes: Causes) -> None:
    """Add the errors in an affinity, in all of its six parts, to `causes`."""
    nodes = affinity.get("nodeAffinity", {})
    if _REQUIRED in nodes:
        check_node_selector(nodes[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}", causes)
    for index, term in enumerate(nodes.get(_PREFERRED, ())):
        where = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
        _check_weight(term, where, causes)
        _check_node_term(term.get("preference", {}), f"{where}.preference", causes)
    for kind in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate(affinity.get(kind, {}).get(_REQUIRED, ())):
            _check_pod_term(term, f"{path}.{kind}.{_REQUIRED}[{index}]", causes)
        for index, weighted in enumerate(affinity.get(kind, {}).get(_PREFERRED, ())):
            where = f"{path}.{kind}.{_PREFERRED}[{index}]"
            _check_weight(weighted, where, causes)
            _check_pod_term(weighted.get("podAffinityTerm", {}), f"{where}.podAffinityTerm", causes)


def check_node_selector(selector: Json, path: str, causes: Causes) -> None:
    """Add the errors in a node selector, of an affinity or of a volume, to `causes`."""
    terms = selector.get("nodeSelectorTerms", ())
    if not terms:
        causes.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        _check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", causes)


def _check_node_term(term: Json, path: str, causes: Causes) -> None:
    for index, item in enumerate(term.get("matchExpressions", ())):
        check_requirement(item, f"{path}.matchExpressions[{index}]", _LISTS, _NODE_OPERATORS, causes)
    for index, item in enumerate(term.get("matchFields", ())):
        _check_field(item, f"{path}.matchFields[{index}]", causes)


def _check_field(item: Json, path: str, causes: Causes) -> None:
    operator, values, key = item.get("operator", ""), item.get("values", ()), item.get("key", "")
    if operator not in _LISTS:
        causes.invalid(f"{path}.operator", json.dumps(operator), "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        causes.required(f"{path}.values", detail)
    if key != "metadata.name":
        causes.invalid(f"{path}.key", json.dumps(key), "not a valid field selector key")
        return
    for index, value in enumerate(values):
        say_all(causes, f"{path}.values[{index}]", value, names.subdomain(value))


def _check_weight(term: Json, path: str, causes: Causes) -> None:
    weight = term.get("weight", 0)
    if not 0 < weight <= 100:
        causes.invalid(f"{path}.weight", str(weight), _WEIGHT)


def _check_pod_term(term: Json, path: str, causes: Causes) -> None:
    for name in ("labelSelector", "namespaceSelector"):
        check_selector(term.get(name, {}), f"{path}.{name}", causes)
    check_label_keys(term, path, causes)
    for namespace in term.get("namespaces", ()):
        say_all(causes, f"{path}.namespace", namespace, names.label_name(namespace))
    key = term.get("topologyKey", "")
    if not key:
        causes.required(f"{path}.topologyKey", _NOT_EMPTY)
    check_key(key, f"{path}.topologyKey", causes)


def check_gates(gates: list[Json], path: str, causes: Causes) -> None:
    """Add the errors in scheduling gates to `causes`."""
    known: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        say_all(causes, f"{path}[{index}]", name, names.qualified(name))
        if name in known:
            causes.duplicate(f"{path}[{index}]", json.dumps(name))
        known.add(name)


def check_spreading(constraints: list[Json], path: str, causes: Causes) -> None:
    """Add the errors in topology spread constraints to `causes`."""
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        when = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            causes.invalid(f"{where}.maxSkew", str(skew), _POSITIVE)
        if key:
            check_key(key, f"{where}.topologyKey", causes)
        else:
            causes.required(f"{where}.topologyKey", _NOT_EMPTY)
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            supported = ("DoNotSchedule", "ScheduleAnyway")
            causes.unsupported(f"{where}.whenUnsatisfiable", json.dumps(when), supported)
        for other in constraints[index + 1 :]:
            if (other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")) == (key, when):
                pair = json.dumps(f"{{{key}, {when}}}")
                causes.duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", pair)
                break
        _check_domains(constraint, f"{where}.minDomains", when, causes)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name, "Honor") not in ("Honor", "Ignore"):
                given = json.dumps(constraint[name])
                causes.unsupported(f"{where}.{name}", given, ("Honor", "Ignore"))
        check_label_keys(constraint, where, causes)
        check_selector(constraint.get("labelSelector", {}), f"{where}.labelSelector", causes)


def _check_domains(constraint: Json, path: str, when: str, causes: Causes) -> None:
    least = constraint.get("minDomains")
    if least is None:
        return
    if least <= 0:
        causes.invalid(path, str(least), _POSITIVE)
    if when != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
        causes.invalid(path, str(least), detail)


def check_tolerations(tolerations: list[Json], path: str, causes: Causes) -> None:
    """Add the errors in tolerations to `causes`."""
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, value = toleration.get("key", ""), toleration.get("value", "")
        operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
        if key:
            check_key(key, f"{where}.key", causes)
        elif operator != "Exists":
            detail = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            causes.invalid(f"{where}.operator", json.dumps(operator), detail)
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.invalid(f"{where}.effect", json.dumps(effect), detail)
        if operator in ("", "Equal"):
            wrong = names.label_value(value)
            if wrong:
                causes.invalid(f"{where}.operator", json.dumps(value), ";".join(wrong))
        elif operator == "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                causes.invalid(f"{where}.operator", json.dumps(value), detail)
        else:
            causes.unsupported(f"{where}.operator", json.dumps(operator), ("Equal", "Exists"))
        if effect and effect not in EFFECTS:
            causes.unsupported(f"{where}.effect", json.dumps(effect), EFFECTS)


def check_taints(taints: list[Json], path: str, causes: Causes) -> None:
    """Add the errors in the taints of a node to `causes`."""
    known: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        check_key(key, f"{where}.key", causes)
        wrong = names.label_value(value)
        if wrong:
            causes.invalid(f"{where}.value", json.dumps(value), ";".join(wrong))
        if not effect:
            causes.required(f"{where}.effect")
        elif effect not in EFFECTS:
            causes.unsupported(f"{where}.effect", json.dumps(effect), EFFECTS)
        if (key, effect) in known:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            detail = "taints must be unique by key and effect pair"
            causes.duplicate(where, json.dumps(shown, separators=(",", ":")), detail)
        known.add((key, effect))
