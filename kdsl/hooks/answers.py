"""Checks the answers of hooks: plugins are written in a dynamically typed language.

An answer is checked as deep as the cycle reads it, and copied where a subclass could change it later: the
cycle gets plain tuples, texts and numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.base.containment import items_of
from kdsl.base.events import EventPattern, merged
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.specs import AddedScores, Backoff, Candidate, Narrowed, Nominated, Wait
from kdsl.hooks.status import Code, Status, StatusColumn, StatusTable

Hook = Callable[..., Any]
_INT64: Final = range(-(2**63), 2**63)


def answering(point: str, hook: Hook, plugin: str) -> Hook:
    """Return the hook with a TypeError or ValueError for an invalid answer: the cycle handles these.

    A rejection without a reason gets one that names the plugin, where a decision would have none to show.
    """
    if point in _SORT_KEYS:
        return _with_sort_keys(point, hook)
    allowed = _ANSWERS.get(point)
    if allowed is None:
        read = _READ.get(point)
        return hook if read is None else lambda *values: read(hook(*values))
    *others, last = ("None", *(each.__name__ for each in allowed))
    names = f"{', '.join(others)} or {last}"
    default = (f'rejected by plugin "{plugin}" without a reason',) if point in _NEEDS_REASON else ()

    def call(*values: Any) -> Any:
        answer = hook(*values)
        if answer is None:
            return None
        kind = type(answer)
        if kind not in allowed:
            raise TypeError(f"`{point}` must return {names}, not {kind.__name__}")
        return _CHECKS[kind](answer, default)

    return call


# ---- parts -------------------------------------------------------------------------------------------------


def _typed(value: Any, kind: type, what: str) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{what} is {type(value).__name__}, not {kind.__name__}")
    return value


def _items(values: Any, what: str) -> tuple[Any, ...]:
    items = items_of(values)
    if items is None:
        raise TypeError(f"{what} is {type(values).__name__}: give a list, tuple, set or dict")
    return items


def _texts(values: Any, what: str) -> tuple[str, ...]:
    return tuple(_typed(each, str, f"one of {what}") for each in _items(values, what))


def _integer(value: Any, what: str) -> int:
    if isinstance(value, np.integer):
        value = value.item()
    number: int = _typed(value, int, what)
    if number not in _INT64:
        raise ValueError(f"{what} is more than 64 bits hold")
    return number


def _integers(values: Any, what: str) -> NDArray[Any]:
    column: NDArray[Any] = np.asarray(values)
    if column.dtype.kind not in "iu" or column.ndim != 1:
        raise TypeError(f"{what} is no column of integers")
    return column


def _sized(values: Any) -> NDArray[Any]:
    """Return raw scores as a plain array, not a subclass."""
    return np.asarray(values)


def _mask(values: Any) -> NDArray[np.bool_]:
    mask = np.asarray(values)
    if mask.dtype != np.bool_:
        raise TypeError(f"the answer has values of type {mask.dtype}, not bool")
    return mask


# ---- answers -----------------------------------------------------------------------------------------------


def _status(status: Status, default: tuple[str, ...] = ()) -> Status:
    """Return a checked status; a rejection without reasons has those of `default`."""
    _typed(status, Status, "a status")
    _typed(status.code, Code, "`code` of a status")
    _typed(status.plugin, str, "`plugin` of a status")
    for texts, what in ((status.reasons, "`reasons` of a status"), (status.sites, "`sites` of a status")):
        for each in _typed(texts, tuple, what):
            _typed(each, str, f"one of {what}")
    if default and not status.reasons and status.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE):
        return Status(status.code, default, status.plugin)
    return Status(status.code, status.reasons, status.plugin, status.sites) if status.parts else status


def _column(column: StatusColumn, default: tuple[str, ...] = ()) -> StatusColumn:
    table = column.table
    if type(table) not in (list, tuple, StatusTable):
        raise TypeError(f"`table` of a column is {type(table).__name__}: give a list or tuple")
    ids = _integers(column.ids, "`ids` of a column")
    # Before the conversion to int32: a large number would become another one.
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < len(table):
        raise ValueError("`ids` of a column name an entry that its table does not have")
    ids = ids.astype(np.int32)
    used = np.bincount(ids).nonzero()[0].tolist()
    # Unused statuses are not checked: a table may be shared and long.
    statuses = list(table[: used[-1] + 1]) if used else []
    for number in used:
        statuses[number] = _status(statuses[number], default)
    if used and used[0] == 0 and statuses[0].code is not Code.SUCCESS:
        raise ValueError("`table` of a column begins with success")
    chosen = set(used)
    return StatusColumn(ids, tuple(each if at in chosen else _NOBODY for at, each in enumerate(statuses)))


_NOBODY: Final = Status(Code.SUCCESS)


def _narrowed(answer: Narrowed, default: tuple[str, ...]) -> Narrowed:
    return Narrowed(frozenset(_texts(answer.names, "`names`")))


def _nominated(answer: Nominated, default: tuple[str, ...]) -> Nominated:
    return Nominated(
        _typed(answer.node, str, "`node`"),
        _texts(answer.victims, "`victims`"),
        _texts(answer.reasons, "`reasons`"),
        _texts(answer.blockers, "`blockers`"),
    )


def _facts(answer: Any) -> dict[str, tuple[str, ...]]:
    if answer is None:
        return {}
    if not isinstance(answer, dict):
        raise TypeError(f"`decided_by` must return None or dict, not {type(answer).__name__}")
    reasons = _texts(answer, "the reasons")
    return {each: _texts(dict.__getitem__(answer, each), "what decided") for each in reasons}


def _wait(answer: Wait, default: tuple[str, ...]) -> Wait:
    return Wait(_integer(answer.timeout, "`timeout`"))


def _pods(answer: Any) -> tuple[PodInfo, ...]:
    return tuple(_typed(each, PodInfo, "one of the victims") for each in _items(answer, "the answer"))


def _candidates(answer: Any) -> Sequence[Candidate] | Status:
    if type(answer) is Status:
        return _status(answer)
    return tuple(_candidate(each, "one of the candidates") for each in _items(answer, "the answer"))


def _candidate(answer: Any, what: str = "the answer") -> Candidate:
    found = _typed(answer, Candidate, what)
    return Candidate(
        _typed(found.node, str, "`node`"), _pods(found.victims), _integer(found.violations, "`violations`")
    )


def _added(answer: Any) -> tuple[AddedScores, ...]:
    found = (_typed(each, AddedScores, "one of the scores") for each in _items(answer, "the answer"))
    return tuple(
        AddedScores(
            _typed(each.name, str, "`name`"),
            _integer(each.weight, "`weight`"),
            _integers(each.scores, "`scores`"),
        )
        for each in found
    )


def _scores(answer: Any) -> Any:
    return answer if type(answer) is int else _sized(answer)


def _score(answer: Any) -> int | float:
    if isinstance(answer, (np.integer, np.floating)):
        answer = answer.item()
    if type(answer) not in (int, float):
        raise TypeError(f"`score_node` must return a number, not {type(answer).__name__}")
    return answer if type(answer) is float else _integer(answer, "the score")


def _events(answer: Any) -> tuple[EventPattern, ...]:
    found = _items(answer, "the answer")
    return tuple(merged(_typed(each, EventPattern, "one of the events") for each in found))


def _hints(answer: Any) -> list[bool]:
    items = answer.tolist() if type(answer) is np.ndarray else answer
    if not issubclass(type(items), (list, tuple)):  # a set or dict has no place for each pod
        raise TypeError(f"the answer is {type(answer).__name__}: give a list, tuple or array")
    return [_hint(each, "one of the answers") for each in _items(items, "the answer")]


def _hint(answer: Any, what: str = "the answer") -> bool:
    """Return a hint's answer. None is no answer: a pod that sleeps because of it may sleep for ever."""
    if type(answer) not in (bool, int) and not isinstance(answer, np.bool_ | np.integer):
        raise TypeError(f"{what} is {type(answer).__name__}, not bool")
    return bool(answer)


def _backoff(answer: Any) -> Backoff:
    if type(answer) is not Backoff:
        raise TypeError(f"this is no Backoff: {type(answer).__name__}")
    initial, maximum = _integer(answer.initial, "`initial`"), _integer(answer.maximum, "`maximum`")
    if initial < 0 or maximum < 0:
        raise ValueError("a wait is 0 nanoseconds or more")
    return Backoff(initial, maximum)


_CHECKS: Final[Mapping[type, Callable[[Any, tuple[str, ...]], Any]]] = {
    Status: _status,
    StatusColumn: _column,
    Narrowed: _narrowed,
    Nominated: _nominated,
    Wait: _wait,
}
_ANSWERS: Final[Mapping[str, tuple[type, ...]]] = {
    "pre_enqueue": (Status,),
    "pre_filter": (Status, Narrowed),
    "add_pod": (Status,),
    "remove_pod": (Status,),
    "filter": (StatusColumn,),
    "filter_node": (Status,),
    "filter_feasible": (StatusColumn, Status),
    "post_filter": (Status, Nominated),
    "may_preempt": (Status,),
    "pre_score": (Status,),
    "reserve": (Status,),
    "permit": (Status, Wait),
    "pre_bind_pre_flight": (Status,),
    "pre_bind": (Status,),
    "bind": (Status,),
}
"""The types of answers beside None, which is success."""

_NEEDS_REASON: Final = frozenset(("pre_enqueue", "pre_filter", "filter", "filter_node", "reserve", "permit"))
"""The hooks whose rejection is shown to users by its reasons alone. An extender's, of `filter_feasible`, may
have none, as in kube-scheduler.
"""

_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "events": _events,
    "backoff": _backoff,
    "queueing_hint": _hint,
    "queueing_hints": _hints,
    "decided_by": _facts,
    "find_victims": _pods,
    "enough_candidates": lambda answer: _integer(answer, "the answer"),
    "may_have_victims": _mask,
    "trim_candidates": _candidates,
    "choose_candidate": _candidate,
    "score": _scores,
    "score_node": _score,
    "normalize_score": _sized,
    "add_scores": _added,
}
"""Hooks that must return a value. The results of `unreserve` and `post_bind` are not read."""


# ---- sort keys ---------------------------------------------------------------------------------------------

_SORT_KEYS: Final = frozenset(("queue_sort",))
_DEPTH: Final = 8


def _with_sort_keys(point: str, hook: Hook) -> Hook:
    """Return the hook with plain keys that all have one form, so that comparing two of them never fails."""
    forms: list[Any] = []

    def call(*values: Any) -> Any:
        key = _plain(hook(*values), _DEPTH)
        form = _form(key)
        if not forms:
            forms.append(form)
        if form != forms[0]:
            raise TypeError(f"`{point}` answers keys that cannot be compared: they are of different types")
        return key

    return call


def _plain(key: Any, depth: int) -> Any:
    if isinstance(key, (np.integer, np.floating, np.bool_)):
        key = key.item()
    if key is None:
        return key
    for kind, exact in _EXACT.items():
        if isinstance(key, kind):
            plain = exact(key)
            if plain != plain:
                raise ValueError("NaN has no place in an order")
            return plain
    if isinstance(key, (tuple, list)) and depth:
        return tuple(_plain(each, depth - 1) for each in _items(key, "the key"))
    raise TypeError(f"a sort key is made of numbers, texts and tuples, not of {type(key).__name__}")


_EXACT: Final[Mapping[type, Callable[[Any], Any]]] = {
    int: int.__index__,
    float: float.__float__,
    str: lambda text: str.__getitem__(text, slice(None)),
    bytes: lambda text: bytes.__getitem__(text, slice(None)),
}
"""The conversion of a value to its plain type, without the methods of a subclass."""


def _form(key: Any) -> Any:
    if type(key) is tuple:
        return tuple(map(_form, key))
    return "number" if isinstance(key, (bool, int, float)) else type(key).__name__
