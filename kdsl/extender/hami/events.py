"""HAMi's events about filter and bind, with HAMi's texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.extender.hami.choosing import Chosen
from kdsl.live.writing.events import MAX_NOTE, Event, EventType, Reference

FILTERING_SUCCEED: Final = "FilteringSucceed"
FILTERING_FAILED: Final = "FilteringFailed"
BINDING_SUCCEED: Final = "BindingSucceed"
BINDING_FAILED: Final = "BindingFailed"
MOST_SCORES: Final = MAX_NOTE // len("n:0.00,")
"""The most scores that fit into an event."""
_COUNTED: Final = re.compile(r"[0-9]+/[0-9]+ (.+)", re.ASCII)


class HamiEvents:
    """Makes events: `scheduler` is their source, `host` its machine."""

    def __init__(self, scheduler: str, host: str) -> None:
        self._scheduler, self._host = scheduler, host

    def chosen(self, pod: PodInfo, chosen: Chosen, failed: Mapping[str, str]) -> Event:
        """Report the node that filter chose."""
        scores = ",".join(f"{name}:{score:.2f}" for name, score in chosen.ranking.worst(MOST_SCORES))
        note = (
            f"find fit node({chosen.node}), {len(failed)} nodes not fit, "
            f"{len(chosen.ranking)} nodes fit({scores})"
        )
        return self._event(pod, EventType.NORMAL, FILTERING_SUCCEED, "Filtering", note)

    def none_fits(self, pod: PodInfo, failed: Mapping[str, str]) -> Iterator[Event]:
        """Report the nodes of each reason, and that no node is feasible.

        The reason is the action of its event, which distinguishes the events of one pod.
        """
        for reason, nodes in sorted(_nodes_by_reason(failed).items()):
            note = f"{len(nodes)} nodes {reason}({','.join(sorted(nodes))})"
            yield self._event(pod, EventType.WARNING, FILTERING_FAILED, reason, note)
        yield self.filter_failed(pod, f"no available node, {len(failed)} nodes do not meet")

    def filter_failed(self, pod: PodInfo, note: str) -> Event:
        """Report why filter failed."""
        return self._event(pod, EventType.WARNING, FILTERING_FAILED, "Filtering", note)

    def bound(self, pod: PodInfo, node: str) -> Event:
        """Report that a pod was bound."""
        note = f"Successfully binding node [{node}] to {pod.key}"
        return self._event(pod, EventType.NORMAL, BINDING_SUCCEED, "Binding", note)

    def bind_failed(self, pod: PodInfo, note: str) -> Event:
        """Report why a pod was not bound."""
        return self._event(pod, EventType.WARNING, BINDING_FAILED, "Binding", note)

    def _event(self, pod: PodInfo, type_: EventType, reason: str, action: str, note: str) -> Event:
        about = Reference("Pod", pod.namespace, pod.name, pod.uid)
        return Event.of(
            about, type_, reason, action, note, controller=self._scheduler or "kdsl", host=self._host
        )


def _nodes_by_reason(failed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the nodes by reason, each reason without its count of cards (`2/8 …`)."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for name, text in failed.items():
        for part in dict.fromkeys(text.split(", ")):
            counted = _COUNTED.fullmatch(part)
            nodes[part if counted is None else counted[1]].append(name)
    return nodes
