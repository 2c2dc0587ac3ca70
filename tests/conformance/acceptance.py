"""Acceptance of an extender's answer by kube-scheduler 1.36.2, and its effect: `spec/live.md` 9.1.

Written from kube-scheduler's handling of answers, without a line of the code that gives them. Keys are read in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
_INT64 = 2**63


def objections(verb: str, knows_nodes: bool, request: Json, status: int, answer: Any) -> list[str]:
    """Return why an answer would not be taken as meant, in a sentence each."""
    if status != 200:
        return [f"the status is {status}"]
    check = {"filter": _filter, "prioritize": _prioritize, "preempt": _preempt, "bind": _bind}[verb]
    return check(knows_nodes, request, answer)


def _filter(knows_nodes: bool, request: Json, answer: Any) -> list[str]:
    said = _folded(answer)
    if said is None:
        return ["the answer is no object"]
    if said.get("error"):
        return []  # the attempt ends with this text
    asked = _asked(request)
    names, nodes = said.get("nodenames"), said.get("nodes")
    if knows_nodes:
        if not _is_list_of(names, str):
            return ["NodeNames is no list: nobody would fit"]
        left = names
    else:
        items = (_folded(nodes) or {}).get("items")
        if not _is_list_of(items, dict):
            return ["Nodes has no items: nobody would fit"]
        left = [node["metadata"]["name"] for node in items]
        sent = {node["metadata"]["name"]: node for node in request["Nodes"]["items"]}
        if any(node != sent.get(node["metadata"]["name"]) for node in items):
            return ["a node is not as it was sent"]
    found = [f"{name} is not found in the input node list" for name in left if name not in asked]
    reasons: Json = {}
    for key in ("failednodes", "failedandunresolvablenodes"):
        failed = said.get(key) or {}
        if not isinstance(failed, dict) or not all(isinstance(text, str) for text in failed.values()):
            return [f"{key} does not map names to texts"]
        found += [f"{name} is out for two reasons" for name in failed if name in reasons]
        reasons |= failed
    found += [f"{name} is left and out" for name in left if name in reasons]
    found += [
        f"{name} is gone without a reason" for name in asked if name not in left and name not in reasons
    ]
    return found


def _prioritize(knows_nodes: bool, request: Json, answer: Any) -> list[str]:
    if not isinstance(answer, list):
        return ["the answer is no list"]
    asked, found = _asked(request), []
    for each in answer:
        said = _folded(each) or {}
        host, score = said.get("host"), said.get("score", 0)
        if host not in asked:
            found.append(f"{host} was not asked about")
        if not isinstance(score, int) or not -_INT64 <= score < _INT64:
            found.append(f"{score} is no int64")
        elif not 0 <= score <= 10:
            found.append(f"{score} is not 0 to 10")
    return found


def _preempt(knows_nodes: bool, request: Json, answer: Any) -> list[str]:
    said = (_folded(answer) or {}).get("nodenametometavictims")
    if not isinstance(said, dict):
        return ["there is no NodeNameToMetaVictims"]
    asked: Json = request["NodeNameToMetaVictims"] or request["NodeNameToVictims"]
    found = []
    for node, victims in said.items():
        if node not in asked:
            found.append(f"{node} was not asked about")
            continue
        known = {each.get("UID") or each["metadata"]["uid"] for each in asked[node]["Pods"]}
        uids = [(_folded(each) or {}).get("uid") for each in (_folded(victims) or {}).get("pods") or ()]
        if not uids:
            found.append(f'expected at least one victim pod on node "{node}"')
        found += [f"{uid} is not found on node {node}" for uid in uids if uid not in known]
    return found


def _bind(knows_nodes: bool, request: Json, answer: Any) -> list[str]:
    said = _folded(answer)
    return [] if said is not None and isinstance(said.get("error", ""), str) else ["Error is no text"]


def _asked(request: Json) -> list[str]:
    if request["NodeNames"] is not None:
        return list(request["NodeNames"])
    return [node["metadata"]["name"] for node in request["Nodes"]["items"]]


def _folded(value: Any) -> Json | None:
    """Return an object with its keys in lower case; None for what is none."""
    return {key.lower(): each for key, each in value.items()} if isinstance(value, Mapping) else None


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) for each in value)
