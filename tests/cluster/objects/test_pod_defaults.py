"""Defaults for fields that pods leave out: kube-scheduler's values, and mistakes in the file."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from kdsl.cluster.objects.pod_defaults import OwnerKind, pod_defaults, read_pod_defaults

DOCUMENT: dict[str, Any] = {
    "scoredRequests": {"cpu": "1", "example.com/gpu": 2},
    "spread": {
        "minDomains": 2,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
        "owners": [{"apiVersion": "apps/v1", "kind": "ReplicaSet"}],
    },
}


def test_the_shipped_defaults_are_kube_schedulers() -> None:
    found = pod_defaults()
    assert found is pod_defaults(), "read once"
    assert found.scored_requests == {"cpu": "100m", "memory": "200Mi"}
    spread = found.spread
    assert (spread.min_domains, spread.node_affinity_policy, spread.node_taints_policy) == (
        1,
        "Honor",
        "Ignore",
    )
    assert {each.kind for each in spread.owners} == {"ReplicationController", "ReplicaSet", "StatefulSet"}


def test_a_document() -> None:
    found = read_pod_defaults(DOCUMENT)
    assert found.scored_requests == {"cpu": "1", "example.com/gpu": 2}
    assert found.spread.owners == {OwnerKind("apps/v1", "ReplicaSet")}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("scoredRequests.cpu", "much", "scoredRequests.cpu: "),
        ("scoredRequest", {}, "unknown field `scoredRequest`"),
        ("spread.minDomains", 0, r"Expected `int` >= 1 - at `\$.spread.minDomains`"),
        ("spread.nodeTaintsPolicy", "honor", r"Invalid enum value 'honor' - at `\$.spread.nodeTaintsPolicy`"),
        ("spread.owners", [{"apiVersion": "batch/v1", "kind": "Job"}], "Job batch/v1 has no selector"),
    ],
)
def test_mistakes_are_errors(path: str, value: Any, message: str) -> None:
    document = deepcopy(DOCUMENT)
    *parts, last = path.split(".")
    at = document
    for part in parts:
        at = at[part]
    at[last] = value
    with pytest.raises(ValueError, match=message):
        read_pod_defaults(document)
