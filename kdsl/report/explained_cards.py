"""Cards in the explanation of a pod: why each is given or refused, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kdsl.explain.cards import CardOutcome, CardsOfNode, CardVerdict, ContainerCards, RefusedCards
from kdsl.plan.devices.demand import DeviceRequest
from kdsl.report.atoms import AtomPrinter
from kdsl.report.cards import usage_document
from kdsl.report.decisions import Json
from kdsl.report.tables import table

_ORDERS = {
    "binpack": "the fullest first",
    "spread": "the emptiest first",
    "topology-aware": "the emptiest first",
    "mutex": "idle ones first",
    "numa": "by NUMA node",
}
"""The effect of each card policy; any other word has that of `spread`."""
_WHOLE = 100
_NO_PERCENT = (0, 101)


def cards_lines(nodes: Sequence[CardsOfNode], atoms: AtomPrinter) -> list[str]:
    """Return a table of the cards of some nodes, each node below a line about it."""
    rows = [row for node in nodes for row in _node_rows(node, atoms)]
    if not rows:
        return []
    header = ["CARDS OF", "CONTAINER", "CARD", "SLOTS", "MEMORY", "CORES", "FULL", "IS", "DECIDED BY", "AT"]
    if not any(row[-1] for row in rows):
        header, rows = header[:-2], [row[:-2] for row in rows]
    lines = [_node_line(node) for node in nodes if node.containers]
    return [*lines, "", *table(header, rows, right={3, 4, 5, 6})]


def given_lines(node: CardsOfNode | None) -> list[str]:
    """Return the cards of each container: `main gets gpu-1 (8,000 MiB, 30 cores)`."""
    lines: list[str] = []
    for each in () if node is None else node.containers:
        given = [f"{card.card.id} ({_given(card)})" for card in each.cards if card.grants]
        lines += [f"{each.container} gets {', '.join(given)}"] if given else []
    return lines


def refused_lines(refused: Sequence[RefusedCards]) -> list[str]:
    """Return the numbers of refused cards of all nodes, by reason."""
    if not refused:
        return []
    rows = [[f"{each.cards:,}", f"{each.nodes:,}", each.reason] for each in refused]
    return table(["CARDS", "NODES", "REFUSED BY"], rows, right={0, 1})


def asks_text(container: ContainerCards) -> str:
    """Return the request of a container: `2 NVIDIA of 8,000 MiB and 30 cores each`."""
    request = container.request
    parts = [*_memory(request), *([f"{request.cores:,} cores"] if request.cores else [])]
    each = " each" if request.count > 1 else ""
    of = f" of {' and '.join(parts)}{each}" if parts else ""
    return f"{request.count:,} {request.kind}{of}"


def _memory(request: DeviceRequest) -> Iterator[str]:
    if request.memory > 0:
        yield f"{request.memory:,} MiB"
    elif request.percent == _WHOLE:
        yield "all memory"
    elif request.percent not in _NO_PERCENT:
        yield f"{request.percent} % of the memory"


def _node_line(node: CardsOfNode) -> str:
    """Return the requests, the order and policy of the tried cards, and the result."""
    asked = "; ".join(
        f"{each.container} asks for {asks_text(each)}, {_way(node, each)}" for each in node.containers
    )
    if node.score is None:
        return f"{node.node}: {asked}: {node.reason}"
    value = node.score - node.fullness
    score = f"score {node.score:g}" + (f" = {node.fullness:g} full + {value:g} by value" if value else "")
    return f"{node.node}: {asked}; {score}"


def _way(node: CardsOfNode, container: ContainerCards) -> str:
    if container.order:
        order = f"cards by `order by {container.order}`"
    else:
        policy = node.policy.device
        words = [_ORDERS[word.strip()] for word in policy.split(",") if word.strip() in _ORDERS]
        said = "the pod's annotation" if node.is_own_policy else "the profile"
        order = f"{', then '.join(words) or _ORDERS['spread']} (`{policy}` of {said})"
    return order + (f", chosen by `{container.chooser}`" if container.chooser else "")


def _node_rows(node: CardsOfNode, atoms: AtomPrinter) -> Iterator[list[str]]:
    name = node.node
    for container in node.containers:
        called = container.container
        if container.failed is not None:
            decided = "; ".join(map(atoms.text, container.failed.atoms))
            head = [name, called, "(the node)", "", "", "", "", container.failed.reason, decided]
            yield [*head, container.failed.site]
            name = called = ""
        for verdict in container.cards if container.failed is None else ():
            yield [name, called, *_card_cells(verdict, container, atoms)]
            name = called = ""


def _card_cells(verdict: CardVerdict, container: ContainerCards, atoms: AtomPrinter) -> list[str]:
    card = verdict.card
    decided = "; ".join(map(atoms.text, verdict.atoms))
    return [
        card.id,
        f"{card.used}/{card.slots}",
        f"{card.used_memory}/{card.memory}",
        f"{card.used_cores}/{card.cores}",
        f"{verdict.fullness:.1f}",
        _state(verdict, container),
        decided,
        "" if verdict.failed is None else verdict.failed.site,
    ]


def _given(verdict: CardVerdict) -> str:
    return " and ".join(f"{each.memory:,} MiB, {each.cores:,} cores" for each in verdict.grants)


def _state(verdict: CardVerdict, container: ContainerCards) -> str:
    match verdict.outcome:
        case CardOutcome.GIVEN:
            return f"given: {_given(verdict)}"
        case CardOutcome.REFUSED:
            return verdict.reason
        case CardOutcome.UNASKED:
            return "not needed"
    return "would do, but not enough do" if container.reason else "would do, others were chosen"


# ---- JSON ------------------------------------------------------------------------------------------------


def cards_document(node: CardsOfNode | None, atoms: AtomPrinter) -> Json:
    """Return the cards of a node; null if they are unknown."""
    if node is None:
        return None
    return {
        "policy": node.policy.device,
        "isPodsPolicy": node.is_own_policy,
        "reason": node.reason,
        "fullness": round(node.fullness, 6),
        "score": None if node.score is None else round(node.score, 6),
        "containers": [_container_document(each, atoms) for each in node.containers],
    }


def refused_document(refused: Iterable[RefusedCards]) -> list[Json]:
    """Return the numbers of refused cards, by reason."""
    return [{"reason": each.reason, "cards": each.cards, "nodes": each.nodes} for each in refused]


def _container_document(container: ContainerCards, atoms: AtomPrinter) -> Json:
    request, failed = container.request, container.failed
    return {
        "container": container.container,
        "kind": request.kind,
        "count": request.count,
        "memory": request.memory,
        "percent": request.percent,
        "cores": request.cores,
        "chooser": container.chooser,
        "orderBy": container.order,
        "reason": container.reason,
        "site": "" if failed is None else failed.site,
        "decidedBy": [] if failed is None else list(map(atoms.text, failed.atoms)),
        "cards": [_verdict_document(each, atoms) for each in container.cards],
    }


def _verdict_document(verdict: CardVerdict, atoms: AtomPrinter) -> Json:
    card = verdict.card
    return {
        "id": card.id,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "site": "" if verdict.failed is None else verdict.failed.site,
        "decidedBy": list(map(atoms.text, verdict.atoms)),
        "fullness": round(verdict.fullness, 6),
        **usage_document(card),
        "given": [{"memory": each.memory, "cores": each.cores} for each in verdict.grants],
    }
