"""One container that asks for cards of one kind on one node; and who listens while they are chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kdsl.cluster.devices.cards import Card, Grant
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod
from kdsl.cluster.devices.policy import Policy
from kdsl.eval.scalar import Frame
from kdsl.plan.devices.naming import OwnAnswers
from kdsl.plan.devices.requests import Request


@dataclass(frozen=True, slots=True)
class Allotment:
    """What one container gets of one kind. Fields are those of the `DeviceAllotment` view."""

    container: DeviceContainer
    request: Request
    cards: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """One container on one node.

    `cards` are in the order of trying, `allocated` is what earlier containers of the pod got of this kind;
    `allows` tells whether quotas leave room for these cards as well, None where there are none. `own` is what
    own tests say of the cards, None where that is not known yet.
    """

    pod: DevicePod
    node: DeviceNode
    policy: Policy
    container: DeviceContainer
    request: Request
    cards: Sequence[Card]
    allocated: tuple[Allotment, ...]
    allows: Callable[[Sequence[Grant]], bool] | None
    own: OwnAnswers | None = None


class Listener(Protocol):
    """Hears how the cards of a container are chosen, which it does not change."""

    def begins(self, situation: Situation) -> None:
        """The container is asked about."""

    def chooses(self, chooser: str) -> None:
        """This is the chooser of its cards."""

    def asked(self, card: Card, frame: Frame, reason: str) -> None:
        """A card was tried, with these names of `fit` filled; the reason is empty where it fits."""

    def ends(self, found: tuple[Grant, ...] | str) -> None:
        """This is what the container gets, or why it gets nothing."""
