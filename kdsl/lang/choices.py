"""The choices that statements name by a word. They mean the same in syntax trees and in checked rules."""

from __future__ import annotations

from enum import StrEnum


class RejectionCode(StrEnum):
    """The codes a rule may reject with."""

    UNSCHEDULABLE = "unschedulable"
    UNRESOLVABLE = "unresolvable"
    PENDING = "pending"


class ErrorAction(StrEnum):
    REJECT = "reject"
    ABORT = "abort"
    ZERO = "zero"


class Normalization(StrEnum):
    MAX = "max"
    REVERSE = "reverse"
    MINMAX = "minmax"
    NONE = "none"
    BY = "by"


class RuleKind(StrEnum):
    PREDICATE = "predicate"
    SCORE = "score"
    PREEMPTION = "preemption"
