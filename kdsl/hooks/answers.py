"""What each hook may answer. Plugins are written in a language that does not look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kdsl.hooks.specs import Narrowed, Nominated, Wait
from kdsl.hooks.status import Status, StatusColumn

_ANSWERS: Final[Mapping[str, tuple[type, ...]]] = {
    "pre_enqueue": (Status,),
    "pre_filter": (Status, Narrowed),
    "add_pod": (Status,),
    "remove_pod": (Status,),
    "filter": (StatusColumn,),
    "filter_node": (Status,),
    "filter_feasible": (StatusColumn, Status),
    "post_filter": (Status, Nominated),
    "pre_score": (Status,),
    "reserve": (Status,),
    "permit": (Status, Wait),
    "pre_bind": (Status,),
    "bind": (Status,),
}
"""Beside None. What the others answer is looked at by the phase that asks, or by nobody."""


def answering(point: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return the hook with a TypeError for an answer that it cannot give: the cycle knows what to do then."""
    allowed = _ANSWERS.get(point)
    if allowed is None:
        return hook

    def call(*values: Any) -> Any:
        answer = hook(*values)
        if answer is None or isinstance(answer, allowed):
            return answer
        names = " or ".join(each.__name__ for each in allowed)
        raise TypeError(f"`{point}` answers None, {names}, not {type(answer).__name__}")

    return call
