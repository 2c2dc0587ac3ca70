"""Drawing pods: one entry for each field that rules read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from kdsl.testing.drawing import IMAGE, Drawing
from kdsl.testing.literals import Read
from kdsl.testing.vocabulary import NAME, ZONE

Path = tuple[str, ...]
Draw = Callable[[], Any]

_REQUESTS: Final = {"cpu": ("100m", "1", "3", "5"), "memory": ("64Mi", "1Gi", "17Gi")}
_COUNTS: Final = ("1", "2", "8")
_TIMES: Final = ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "2025-01-01T00:00:00Z")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
CLAIMS: Final = ("claim-1", "claim-2")
HOSTNAME: Final = "kubernetes.io/hostname"
_MOST_CONTAINERS: Final = 12


class PodDrawing:
    """The fields of a generated pod, by the path in its short form."""

    def __init__(self, draw: Drawing) -> None:
        self._draw, self._words = draw, draw.words

    def fields(self) -> dict[Path, Draw]:
        """Return the functions that draw the fields of a pod to schedule."""
        return {**dict(self._common()), **dict(self._pending())}

    def bound_fields(self) -> dict[Path, Draw]:
        """Return the functions that draw the fields of a running pod."""
        return {**dict(self._common()), **dict(self._running())}

    def _common(self) -> Iterator[tuple[Path, Draw]]:
        draw, words = self._draw, self._words
        if words.reads("requests") or words.reads("scoredRequests"):
            yield ("requests",), self._requests
        if words.reads("priority"):
            yield ("priority",), draw.of_numbers("Pod", "priority", -10, 0, 10, 1000)
        if words.reads("hostPorts") or words.literals.reads("HostPort", "port"):
            yield ("hostPorts",), self._host_ports
        if words.reads("namespace"):
            yield ("namespace",), lambda: draw.pick(list(words.namespaces))
        if words.reads("labels") or words.asks("cluster.services", "cluster.budgets"):
            yield ("labels",), self.labels
        if words.reads("annotations"):
            yield ("annotations",), lambda: draw.strings("Pod", "annotations")
        if words.reads("serviceAccount"):
            yield ("serviceAccount",), draw.of_texts("Pod", "serviceAccount", NAME)
        if words.reads("preferredAffinity") or words.reads("requiredAffinity"):
            yield ("affinity", "podAffinity"), self._pod_affinity
        if words.reads("preferredAntiAffinity") or words.reads("requiredAntiAffinity"):
            yield ("affinity", "podAntiAffinity"), self._pod_affinity
        if words.reads("volumes"):
            yield ("spec", "volumes"), self._volumes
        if words.reads("images"):
            yield ("images",), self._images
        if words.literals.reads("Pod", "limits"):
            yield ("limits",), self._limits
        if words.reads("hostNetwork"):
            yield ("spec", "hostNetwork"), lambda: True
        if words.reads("ownerReferences") or words.asks("pod.owner"):
            yield ("metadata", "ownerReferences"), self._owners
        yield from self._times()

    def _times(self) -> Iterator[tuple[Path, Draw]]:
        words = self._words
        if words.reads("createdAt"):
            yield ("metadata", "creationTimestamp"), lambda: self._time("createdAt")
        if words.reads("deletionTimestamp"):
            yield ("metadata", "deletionTimestamp"), lambda: self._time("deletionTimestamp")
        if words.reads("startTime") or words.reads("startedAt"):
            yield ("status", "startTime"), lambda: self._time("startTime")
        if words.reads("phase"):
            yield ("status", "phase"), self._draw.of_texts("Pod", "phase")

    def _running(self) -> Iterator[tuple[Path, Draw]]:
        if self._words.reads("beingPreempted"):
            yield (), lambda: deepcopy(_DISRUPTED)

    def _pending(self) -> Iterator[tuple[Path, Draw]]:
        draw, words = self._draw, self._words
        if words.reads("tolerations"):
            yield ("tolerations",), self._tolerations
        if words.reads("nodeSelector"):
            yield ("nodeSelector",), self._selector
        if words.reads("name") and words.literals.of_place.get(Read("Pod", "name")):
            yield ("metadata", "name"), draw.of_texts("Pod", "name", NAME)
        if words.reads("schedulerName"):
            yield ("schedulerName",), draw.of_texts("Pod", "schedulerName", NAME)
        if words.reads("preemptionPolicy"):
            yield ("spec", "preemptionPolicy"), lambda: draw.pick(("Never", "PreemptLowerPriority"))
        if words.reads("schedulingGates"):
            yield ("schedulingGates",), self._gates
        if words.reads("nodeName"):
            yield ("nodeName",), lambda: draw.pick((*draw.nodes, "elsewhere"))
        if words.reads("requiredNodeAffinity") or words.reads("preferredNodeTerms"):
            yield ("affinity", "nodeAffinity"), self._node_affinity
        if words.reads("spreadConstraints"):
            yield ("spec", "topologySpreadConstraints"), self._spread
        if words.reads("containers") or words.literals.reads("Container", "privileged"):
            yield ("spec", "containers"), lambda: self._containers("containers")
        if words.reads("initContainers"):
            yield ("spec", "initContainers"), lambda: self._containers("initContainers")
        if words.reads("overhead"):
            yield ("spec", "overhead"), self._requests
        if words.asks("queue", "cluster.pods") and words.reads("beingPreempted"):
            yield ("status", "nominatedNodeName"), lambda: draw.pick(draw.nodes or ("node-1",))

    def labels(self) -> dict[str, str]:
        return self._draw.strings("Pod", "labels")

    def _requests(self) -> dict[str, str]:
        words = self._words
        return {
            name: self._draw.pick(words.amounts("Pod", "requests", name, *_REQUESTS.get(name, _COUNTS)))
            for name in words.resources
            if self._draw.random.random() < (0.6 if name in _REQUESTS else 0.4)
        }

    def _limits(self) -> dict[str, str]:
        keys = dict.fromkeys(each.key for each in self._words.literals.reads("Pod", "limits") if each.key)
        return {
            name: self._draw.pick(self._words.amounts("Pod", "limits", name, "1", "2", "1000"))
            for name in keys
            if self._draw.random.random() < 0.6
        }

    def _host_ports(self) -> list[int]:
        known = self._words.numbers("HostPort", "port", 80, 443)
        return self._draw.some([port for port in known if 0 < port < 65536], 2)

    def _tolerations(self) -> list[Any]:
        taints = [*self._words.taints, "node.kubernetes.io/unschedulable:NoSchedule"]
        found: list[Any] = []
        for taint in self._draw.some(taints, 3):
            key, _, rest = taint.partition("=")
            forms = (taint, key.partition(":")[0], taint.rpartition(":")[0], {"operator": "Exists"})
            found.append(self._draw.pick((taint, *forms)) if rest else taint)
        return found

    def _selector(self) -> dict[str, str]:
        labels = self._words.labels
        return {
            key: self._draw.pick([*(labels[key] or ("a",)), "none"])
            for key in self._draw.some(list(labels), 1)
        }

    def _gates(self) -> list[str]:
        return self._draw.some(self._words.texts("Pod", "schedulingGates"), 2)

    def _images(self) -> list[str]:
        names = self._words.texts("Pod", "images", values=IMAGE)
        sizes = self._words.numbers("Pod", "containers", 1, 2)
        return self._draw.some(names, max(1, min(_MOST_CONTAINERS, self._draw.pick(sizes))))

    def _time(self, name: str) -> str:
        known = self._words.texts("Pod", name, values=_TIME)
        return self._draw.pick([*known, *_TIMES])

    def _owners(self) -> list[dict[str, Any]]:
        kinds = [*self._words.texts("OwnerReference", "kind"), "ReplicaSet"]
        names = self._words.texts("OwnerReference", "name")
        return [
            {
                "apiVersion": "apps/v1",
                "kind": self._draw.pick(kinds),
                "name": self._draw.pick(names),
                "uid": "owner",
                "controller": self._draw.random.random() < 0.7,
            }
        ]

    def _containers(self, name: str) -> list[dict[str, Any]]:
        sizes = [each for each in self._words.numbers("Pod", name, 1, 2, 3) if 0 < each <= _MOST_CONTAINERS]
        images = self._words.texts("Pod", "images", values=IMAGE)
        prefix = "main" if name == "containers" else "init"
        found: list[dict[str, Any]] = []
        for at in range(self._draw.pick(sizes)):
            container: dict[str, Any] = {"name": f"{prefix}-{at}" if at else prefix}
            if self._draw.random.random() < 0.5:
                container["image"] = self._draw.pick(images)
            if self._draw.random.random() < 0.3:
                container["securityContext"] = {"privileged": True}
            if name == "initContainers" and self._draw.random.random() < 0.3:
                container["restartPolicy"] = "Always"
            found.append(container)
        return found

    def _selecting(self) -> dict[str, Any]:
        """Draw a selector of pods by their labels."""
        labels = self.labels()
        key = next(iter(labels), "app")
        match self._draw.random.randrange(5):
            case 0:
                return {"matchExpressions": [{"key": key, "operator": "Exists"}]}
            case 1:
                return {}
        return {"matchLabels": {key: labels.get(key, "a")}}

    def _topology_key(self) -> str:
        known = self._words.literals.of_place.get(Read("PodAffinityTerm", "topologyKey"), {})
        spread = self._words.literals.of_place.get(Read("SpreadConstraint", "topologyKey"), {})
        keys = [key for key in (*known, *spread) if isinstance(key, str) and "/" in key]
        return self._draw.pick([*keys, ZONE, ZONE, ZONE, HOSTNAME])

    def _pod_affinity(self) -> dict[str, Any]:
        draw = self._draw
        term: dict[str, Any] = {"labelSelector": self._selecting(), "topologyKey": self._topology_key()}
        if draw.random.random() < 0.3:
            term["namespaces"] = draw.some(list(self._words.namespaces), 2)
        elif draw.random.random() < 0.3:
            term["namespaceSelector"] = {}
        weight = draw.pick((1, 10, 100))
        preferred = {_PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}
        return draw.pick(({_REQUIRED: [term]}, preferred))

    def _node_term(self) -> dict[str, Any]:
        draw, labels = self._draw, self._words.labels
        if draw.random.random() < 0.25:
            fields = [
                {"key": "metadata.name", "operator": "In", "values": [draw.pick(draw.nodes or ("node-1",))]}
            ]
            return {"matchFields": fields}
        key = draw.pick(list(labels))
        operator = draw.pick(("In", "In", "NotIn", "Exists", "DoesNotExist"))
        values = {"values": draw.some(list(labels[key]) or ["a"], 2)} if operator.endswith("In") else {}
        return {"matchExpressions": [{"key": key, "operator": operator, **values}]}

    def _node_affinity(self) -> dict[str, Any]:
        required = {_REQUIRED: {"nodeSelectorTerms": [self._node_term()]}}
        weight = self._draw.of_numbers("PreferredNodeTerm", "weight", 1, 10)()
        preferred = {_PREFERRED: [{"weight": max(1, min(100, weight)), "preference": self._node_term()}]}
        return self._draw.pick((required, preferred, {**required, **preferred}))

    def _spread(self) -> list[dict[str, Any]]:
        draw = self._draw
        skews = [each for each in self._words.numbers("SpreadConstraint", "maxSkew", 1, 2) if each > 0]
        found: list[dict[str, Any]] = []
        for _ in range(draw.pick((1, 1, 2))):
            constraint: dict[str, Any] = {
                "maxSkew": draw.pick((1, draw.pick(skews))),
                "topologyKey": self._topology_key(),
                "whenUnsatisfiable": draw.pick(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": self._selecting(),
            }
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw.random.random() < 0.2:
                constraint["minDomains"] = draw.pick((1, 2, 3))
            if all(constraint["topologyKey"] != other["topologyKey"] for other in found):
                found.append(constraint)
        return found

    def _volumes(self) -> list[dict[str, Any]]:
        draw = self._draw
        claims: Sequence[str] = (
            *CLAIMS,
            *self._words.texts("PodVolume", "claimName", values=NAME),
            "missing",
        )
        forms: list[Draw] = [
            lambda: {"persistentVolumeClaim": {"claimName": draw.pick(claims)}},
            lambda: {"persistentVolumeClaim": {"claimName": draw.pick(CLAIMS)}},
            lambda: {"gcePersistentDisk": {"pdName": "disk", "readOnly": draw.random.random() < 0.5}},
            lambda: {"ephemeral": {"volumeClaimTemplate": {"spec": deepcopy(_CLAIM)}}},
            lambda: {"emptyDir": {}},
        ]
        return [{"name": f"volume-{at + 1}", **draw.pick(forms)()} for at in range(draw.pick((1, 1, 2)))]


_DISRUPTED: Final = {
    "metadata": {"deletionTimestamp": _TIMES[0]},
    "status": {
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    },
}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
