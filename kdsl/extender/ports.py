"""The port for answers to kube-scheduler and the API server: by rules, or as HAMi."""

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
    """A valid call that fails. The text becomes the `Error` of the answer, which kube-scheduler shows.

    Answers without an `Error` field get status 500 instead.
    """


class NotReadyError(Exception):
    """A call that has no answer yet; it gets 503 with Retry-After."""


class Behaviour(Protocol):
    """Answers concurrent calls, on the event loop. Raises RefusedError or NotReadyError.

    Any other exception is logged and handled like RefusedError.
    """

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Return the feasible nodes, in the form of the call, and the reasons of the others."""
        ...

    async def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        """Return the scores of the nodes, 0 to 10."""
        ...

    async def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        """Return the nodes whose victims may be evicted, with these victims."""
        ...

    async def bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        """Bind the pod, and return when it is bound."""
        ...

    async def admit(self, review: AdmissionReview) -> AdmissionReview:
        """Return the review of a new pod: `review.allowed(patch)` or `review.denied(text)`."""
        ...

    def works(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return the tasks that run until the process ends, by name."""
        ...
