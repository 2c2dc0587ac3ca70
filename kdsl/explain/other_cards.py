"""The reasons for which a pod gets other cards of the same node."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kdsl.explain.cards import CardOutcome, CardsOfNode, ContainerCards
from kdsl.explain.moves import Cause, CauseKind


def other_cards(old: CardsOfNode | None, new: CardsOfNode | None, ids: Collection[str]) -> Cause:
    """Return the cause of the first card that only one of two choices gives to a container.

    A card that the new rules refuse comes first, then one that only the old rules refused, then the order.
    `ids` are the cards that the old choice gives, which is None where only they are known.
    """
    if new is None:
        return Cause(CauseKind.CARDS, reason="the new rules record cards in another way")
    for was, is_ in _pairs(old, new):
        given = ids if was is None else _given(was)
        cause = _refused(is_, given, "is refused now")
        if cause is None and was is not None:
            cause = _refused(was, _given(is_), "was refused before")
        if cause is not None:
            return cause
    for was, is_ in _pairs(old, new):
        given = _given(is_)
        if was is None or _given(was) != given:
            first = given[0] if given else ""
            order = f"order by {is_.order}" if is_.order else f"the policy {new.policy.device}"
            return Cause(CauseKind.CARDS, is_.chooser, f"{first} comes first by {order}")
    return Cause(CauseKind.CARDS, reason="the same cards are recorded with other amounts")


def _pairs(
    old: CardsOfNode | None, new: CardsOfNode
) -> Iterator[tuple[ContainerCards | None, ContainerCards]]:
    known = {} if old is None else {(one.container, one.request.kind): one for one in old.containers}
    return ((known.get((one.container, one.request.kind)), one) for one in new.containers)


def _refused(by: ContainerCards, given: Collection[str], words: str) -> Cause | None:
    """Return the cause if a card that the other choice gives is refused."""
    for verdict in by.cards:
        if verdict.card.id in given and verdict.outcome is CardOutcome.REFUSED:
            site = "" if verdict.failed is None else verdict.failed.site
            return Cause(CauseKind.CARDS, by.chooser, f"{verdict.card.id} {words}: {verdict.reason}", site)
    return None


def _given(one: ContainerCards) -> tuple[str, ...]:
    return tuple(each.card.id for each in one.cards if each.outcome is CardOutcome.GIVEN)
