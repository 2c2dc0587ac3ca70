"""The decisions of a record: the parts of the document that comparisons need, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kdsl.cycle.decision import Decision, Outcome, Rejection, Victim


class _VictimDocument(Struct, frozen=True):
    pod: str


class _RejectionDocument(Struct, frozen=True):
    plugin: str
    code: str = ""
    reason: str = ""
    site: str = ""
    nodes: int = 0


class _DecisionDocument(Struct, frozen=True, rename="camel"):
    """The fields of a decision with its outcome and the reasons."""

    pod: str
    outcome: Outcome
    profile: str = ""
    node: str = ""
    message: str = ""
    nominated_node: str = ""
    victims: list[_VictimDocument] = []
    nodes: int = 0
    evaluated: int = 0
    feasible: int = 0
    rejections: list[_RejectionDocument] = []


def recorded_decision(document: Mapping[str, Any]) -> Decision:
    """Read a decision, with the numbers of its rejections and without verdicts about nodes.

    Raises msgspec.ValidationError for a malformed one.

    A pod that is being bound counts as placed.
    """
    read = msgspec.convert(document, _DecisionDocument)
    outcome = Outcome.PLACED if read.outcome is Outcome.BINDING else read.outcome
    return Decision(
        read.pod,
        read.profile,
        outcome,
        read.node,
        read.message,
        nominated=read.nominated_node,
        victims=tuple(Victim.of(each.pod, "") for each in read.victims),
        nodes=read.nodes,
        evaluated=read.evaluated,
        feasible=read.feasible,
        rejections=tuple(
            Rejection(each.plugin, each.code, each.reason, each.site, each.nodes) for each in read.rejections
        ),
    )
