"""Expectations of cases about devices: the cards that pods get, the reasons for refused cards, and
annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kdsl.check.views.view import load_views
from kdsl.cluster.devices.codec import decode
from kdsl.cluster.objects.pod import PodInfo
from kdsl.explain.cards import CardExplainer, CardsOfNode, CardVerdict
from kdsl.report.atoms import AtomPrinter
from kdsl.report.values import ValuePrinter
from kdsl.testing.document import PlacedValue
from kdsl.testing.manifest import json_of
from kdsl.testing.mismatch import Mismatch, differs
from kdsl.testing.session import SessionCluster

Outcome = Mapping[str, list[str]]
"""The cards of a pod by container, in the order of the record."""


def cards_of(explainer: CardExplainer | None, pod: PodInfo | None) -> Outcome:
    """Return the cards of a placed pod; empty for a pod that is not placed."""
    if explainer is None or pod is None:
        return {}
    found: dict[str, list[str]] = {}
    for record in explainer.records:
        for container, grants in zip(
            pod.device_containers, decode(pod.annotations.get(record, "")), strict=False
        ):
            found.setdefault(container.name, []).extend(grant.id for grant in grants)
    return {container: cards for container, cards in found.items() if cards}


def compare_cards(
    field: str, wanted: PlacedValue | None, cards: Outcome, trace: tuple[str, ...]
) -> Iterator[Mismatch]:
    """Compare the cards of a pod: a list with the cards of all containers, or a mapping by container."""
    if wanted is None:
        return
    if isinstance(wanted.value, list):
        every = [card for of_container in cards.values() for card in of_container]
        yield from differs(field, wanted, every, trace)
        return
    for container, place in wanted.items():
        yield from differs(f"{field}.{container}", place, cards.get(container, []), trace)


def compare_annotations(wanted: PlacedValue | None, pod: PodInfo | None) -> Iterator[Mismatch]:
    """Compare annotations of a placed pod; a value that is no text in the case means its JSON."""
    for key, place in wanted.items() if wanted is not None else ():
        actual = None if pod is None else pod.annotations.get(key)
        expected = (
            place.value if place.value is None or isinstance(place.value, str) else json_of(place.value)
        )
        if actual != expected:
            why = ("the pod is not placed",) if pod is None else ()
            yield Mismatch(f"annotations.{key}", _text(expected), _text(actual), place.span, why)


def _text(value: str | None) -> str:
    return "no such annotation" if value is None else value or "an empty text"


@dataclass(frozen=True, slots=True)
class CardsBefore:
    """The cards of a case's nodes before its pod takes any."""

    explainer: CardExplainer | None
    pod: PodInfo
    cluster: SessionCluster

    def refused(self, node: str, wanted: PlacedValue | None) -> Iterator[Mismatch]:
        """Compare the reasons why cards of a node are refused."""
        if wanted is None:
            return
        snapshot = self.cluster.cache().snapshot()
        row, found = snapshot.row_of(node), None
        if self.explainer is not None and row is not None:
            found = self.explainer.explain(self.pod, snapshot, row)
        verdicts = _verdicts(found)
        for card, place in wanted.items():
            verdict = verdicts.get(card)
            actual = f"the cards tried are {', '.join(verdicts) or 'none'}"
            trace: tuple[str, ...] = ()
            if verdict is not None:
                actual = verdict.reason or str(verdict.outcome)
                trace = _trace(verdict)
            yield from differs(f"rejected.{node}.cards.{card}", place, actual, trace)


def _verdicts(found: CardsOfNode | None) -> dict[str, CardVerdict]:
    """Return the last outcome of each card."""
    containers = () if found is None else found.containers
    return {verdict.card.id: verdict for container in containers for verdict in container.cards}


def _trace(verdict: CardVerdict) -> tuple[str, ...]:
    if verdict.failed is None:
        return ()
    printer = AtomPrinter(ValuePrinter(load_views()))
    decided = "; ".join(map(printer.text, verdict.atoms))
    return (f"`{verdict.card.id}`: {verdict.reason}: {decided}  at {verdict.failed.site}",)
