"""The annotation preferAvoidPods: nodes that should not get the pods of some controllers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo

PREFER_AVOID_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_KINDS: Final = ("ReplicationController", "ReplicaSet")


def is_avoided(pod: PodInfo, annotations: Mapping[str, str]) -> bool:
    """Return whether the annotations of a node name the ReplicationController or ReplicaSet of `pod`.

    An annotation that cannot be parsed names no controller, as in kube-scheduler.
    """
    owner = pod.owner
    written = annotations.get(PREFER_AVOID_PODS)
    if written is None or owner is None or owner.kind not in _KINDS:
        return False
    try:
        document: Any = json.loads(written)
        controllers = [each["podSignature"]["podController"] for each in document["preferAvoidPods"]]
        return any((each.get("kind"), each.get("uid")) == (owner.kind, owner.uid) for each in controllers)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
