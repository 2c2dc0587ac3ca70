"""Taints of nodes and tolerations of pods, in the form that rules read."""

from __future__ import annotations

from msgspec import Struct


class Taint(Struct, frozen=True):
    """A mark on a node that repels pods: effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


class Toleration(Struct, frozen=True):
    """A tolerance of taints. An empty effect or key matches every taint's, an empty operator means Equal."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Return whether this matches `taint`, as `ToleratesTaint` of k8s.io/component-helpers does."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)
