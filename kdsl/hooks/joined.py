"""Several plugins that answer in one call: the cycle's interface to rules that share memos.

Each plugin is registered by itself and has its place in the profile; joining changes only the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from kdsl.base.containment import describe
from kdsl.hooks.faults import Fault, lines_of
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet


UNKNOWN_SHARE: Final = 0.8
"""The estimated share of nodes that pass where nothing is known. It is below 1, because a second run of the
search costs more than a longer first one.
"""


def failed_together(cause: Exception) -> Fault:
    """Return the fault of rules that fail in one call, and not one by one: a mistake of kdsl.

    It changes no decision, and makes each one much slower.
    """
    file, line, function = lines_of(cause.__traceback__)[-1]
    place = f"{Path(file).name}:{line}, {function}"
    return Fault(
        "", f"the rules failed in one call ({describe(cause)}; {place}), so each was asked by itself"
    )


class PreFilterAnswers(Struct, frozen=True):
    """The answers of plugins at PreFilter, in the order of the profile, without those that let the pod pass.

    Nearly always the others answer SKIP, and are in `skipping`. Where one answers anything else, `skipping`
    is empty, and `answers` has all answers. `share` estimates the share of nodes that pass.
    """

    skipping: tuple[str, ...] = ()
    answers: tuple[tuple[str, Status | Narrowed], ...] = ()
    share: float = UNKNOWN_SHARE

    @staticmethod
    def of(
        answers: Sequence[tuple[str, Status | Narrowed]], share: float = UNKNOWN_SHARE
    ) -> PreFilterAnswers:
        """Return the answers of plugins in compact form."""
        skips = [name for name, answer in answers if isinstance(answer, Status) and answer.code is Code.SKIP]
        if len(skips) == len(answers):
            return PreFilterAnswers(tuple(skips), share=share)
        return PreFilterAnswers(answers=tuple(answers), share=share)


class JoinedPredicates(Protocol):
    """Predicates `names` of a profile, in any places."""

    names: frozenset[str]

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> PreFilterAnswers: ...

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        """Return for each node the status of the first predicate that rejects it, with its name; None where
        all nodes pass. If the snapshot has `what_ifs`, the status is that of the node's own what-if.
        """
        ...


class JoinedScores(Protocol):
    """Scores `names` of a profile, in any places."""

    names: frozenset[str]

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> None:
        """Mark the scores that skip the pod in the state."""
        ...

    def points(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> tuple[NDArray[np.int64], int] | None:
        """Return the weighted sums of the scores of each node without the points that all nodes share, and
        these; None where the scores must run one by one.
        """
        ...
