"""What answers the calls of kube-scheduler and of the API server: rules, or HAMi's behaviour."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol

from kdsl.extender.protocol import (
    AdmissionReview,
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)


class RefusedError(Exception):
    """A call that is understood, and cannot be done; kube-scheduler shows the text as it stands.

    Where the verb's answer has an `Error`, it is there; else the call is answered with the status 500.
    """


class NotReadyError(Exception):
    """A call that cannot be answered yet; it is answered with 503 and Retry-After."""


class Behaviour(Protocol):
    """Answers calls, each on the event loop; many may be under way. Raises RefusedError or NotReadyError.

    Anything else that is raised is logged, and answered as a RefusedError is.
    """

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Say which of the nodes the pod may go to: in the form in which they came."""
        ...

    async def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        """Score the nodes, each from 0 to 10."""
        ...

    async def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        """Say on which of the nodes the victims may go, and which of them have to."""
        ...

    async def bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        """Bind the pod: it is bound once this returns."""
        ...

    async def admit(self, review: AdmissionReview) -> AdmissionReview:
        """Answer the API server about a pod that is made: `review.allowed(patch)`, `review.denied(text)`."""
        ...

    def works(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return what runs while the process does, by name."""
        ...
