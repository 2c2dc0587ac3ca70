"""Changes of the cluster as events: the differences between two versions of an object.

The cache passes every change to its observers. An event on a node carries the old and the new node, so that a
rule can be run on both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kdsl.base.events import Action, Resource
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A change of one object. `before` and `after` are its versions, None before its creation or after its
    deletion.

    `node_before` and `node_after` are the versions of the affected node, with its pods: None where there is
    no node, or an unknown one. `target` is the only pod (`namespace/name`) that the event affects, `priority`
    the highest priority of the pods it affects.
    """

    resource: Resource
    actions: Action
    before: object | None = None
    after: object | None = None
    node_before: NodeInfo | None = None
    node_after: NodeInfo | None = None
    target: str = ""
    priority: int | None = None
    label: str = ""

    @property
    def pod(self) -> PodInfo | None:
        """The pod of the event, in its last version."""
        latest = self.after if self.after is not None else self.before
        return latest if isinstance(latest, PodInfo) else None


def node_event(before: NodeInfo | None, after: NodeInfo | None) -> ClusterEvent | None:
    """Return the event of a node that was added, changed or removed; None for equal versions."""
    old = None if before is None else before.facts
    new = None if after is None else after.facts
    actions = _presence(old, new) if old is None or new is None else node_actions(old, new)
    return ClusterEvent(Resource.NODE, actions, old, new, before, after) if actions else None


def node_actions(old: NodeFacts, new: NodeFacts) -> Action:
    """Return the differences between two versions of a node."""
    found = _amounts(
        old.allocatable, new.allocatable, Action.NODE_ALLOCATABLE_UP, Action.NODE_ALLOCATABLE_DOWN
    )
    found |= _when(old.labels != new.labels, Action.NODE_LABEL)
    found |= _when(not set(new.taints) <= set(old.taints), Action.NODE_TAINT_ADDED)
    found |= _when(not set(old.taints) <= set(new.taints), Action.NODE_TAINT_REMOVED)
    found |= _when(new.unschedulable and not old.unschedulable, Action.NODE_CORDONED)
    found |= _when(old.unschedulable and not new.unschedulable, Action.NODE_UNCORDONED)
    found |= _when(old.annotations != new.annotations, Action.NODE_ANNOTATION)
    found |= _when(old.image_sizes != new.image_sizes, Action.NODE_IMAGE)
    same = replace(
        old,
        allocatable=new.allocatable,
        labels=new.labels,
        taints=new.taints,
        unschedulable=new.unschedulable,
        annotations=new.annotations,
        image_sizes=new.image_sizes,
    )
    return found | _when(same != new, Action.NODE_OTHER)


def pod_actions(old: PodInfo, new: PodInfo) -> Action:
    """Return the differences between two versions of a pod that stays on its node."""
    found = _amounts(old.usage, new.usage, Action.POD_SCALE_UP, Action.POD_SCALE_DOWN)
    found |= _amounts(old.requests, new.requests, Action.POD_SCALE_UP, Action.POD_SCALE_DOWN)
    found |= _when(old.labels != new.labels, Action.POD_LABEL)
    found |= _when(not set(new.tolerations) <= set(old.tolerations), Action.POD_TOLERATION_ADDED)
    found |= _when(not set(old.tolerations) <= set(new.tolerations), Action.POD_TOLERATION_REMOVED)
    found |= _when(bool(old.scheduling_gates and not new.scheduling_gates), Action.POD_GATES_ELIMINATED)
    is_scaled = bool(found & (Action.POD_SCALE_UP | Action.POD_SCALE_DOWN))
    same = old.with_fields(
        requests=new.requests,
        usage=new.usage,
        labels=new.labels,
        tolerations=new.tolerations,
        scheduling_gates=() if found & Action.POD_GATES_ELIMINATED else old.scheduling_gates,
        containers=new.containers if is_scaled else old.containers,
        init_containers=new.init_containers if is_scaled else old.init_containers,
        # The scheduler itself writes these.
        nominated_node_name=new.nominated_node_name,
        node_name=new.node_name,
    )
    return found | _when(same != new, Action.POD_OTHER)


def object_event(resource: Resource, before: object | None, after: object | None) -> ClusterEvent | None:
    """Return the event of an object that is neither node nor pod; None for equal versions."""
    if before == after:
        return None
    actions = _presence(before, after) or Action.UPDATE_OTHER
    return ClusterEvent(resource, actions, before, after)


def pending_pod_event(before: PodInfo, after: PodInfo) -> ClusterEvent | None:
    """Return the event of a changed waiting pod; None where no field changed that rules can read."""
    actions = pod_actions(before, after)
    return ClusterEvent(Resource.TARGET_POD, actions, before, after, target=after.key) if actions else None


def assigned_pod_events(
    before: PodInfo | None,
    after: PodInfo | None,
    nodes_before: dict[str, NodeInfo | None],
    nodes_after: dict[str, NodeInfo | None],
) -> Iterator[ClusterEvent]:
    """Yield the events of a placed pod that was added, changed, removed, or moved from one node to another.

    The maps hold the affected nodes by name, None for nodes that the cluster does not have.
    """
    if before is not None and after is not None and before.node_name == after.node_name:
        changes = [(pod_actions(before, after), before.node_name)]
    else:
        gone = [] if before is None else [(Action.DELETE, before.node_name)]
        come = [] if after is None else [(Action.ADD, after.node_name)]
        changes = [*gone, *come]
    for actions, node in changes:
        if actions:
            old = None if actions == Action.ADD else before
            new = None if actions == Action.DELETE else after
            yield ClusterEvent(
                Resource.ASSIGNED_POD, actions, old, new, nodes_before.get(node), nodes_after.get(node)
            )


def _presence(before: object | None, after: object | None) -> Action:
    if before is None:
        return Action.NONE if after is None else Action.ADD
    return Action.DELETE if after is None else Action.NONE


def _when(condition: bool, action: Action) -> Action:
    return action if condition else Action.NONE


def _amounts(old: Resources, new: Resources, up: Action, down: Action) -> Action:
    if old == new:
        return Action.NONE
    names = {*old, *new}
    found = _when(any(new.amount(name) > old.amount(name) for name in names), up)
    return found | _when(any(new.amount(name) < old.amount(name) for name in names), down)
