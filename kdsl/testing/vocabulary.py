"""The words that generated clusters are made of: those of the fixtures, and those that the rules look for.

A random label decides nothing. What decides is the label a rule reads, with the values it compares it to and
those just beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kdsl.base.quantity import Quantity, parse_quantity
from kdsl.check.model import CheckedForEach, CheckedLet, CheckedPredicate, CheckedProfile, CheckedStatement
from kdsl.check.typed import CallOf, Const, TypedExpr
from kdsl.check.walk import walk
from kdsl.testing.fixtures import Fixtures, Kind
from kdsl.testing.manifest import Manifest

_LOOKUPS: Final = frozenset(("_[_]", "_[?_]", "@in"))


@dataclass(slots=True)
class Vocabulary:
    """What may be written into generated nodes and pods. Dictionaries are ordered sets."""

    labels: dict[str, dict[str, None]] = field(default_factory=dict)
    resources: dict[str, None] = field(default_factory=lambda: dict.fromkeys(("cpu", "memory")))
    taints: dict[str, None] = field(default_factory=dict)
    namespaces: dict[str, None] = field(default_factory=lambda: dict.fromkeys(("default",)))

    @staticmethod
    def of(profiles: Iterable[CheckedProfile], fixtures: Fixtures) -> Vocabulary:
        """Gather the words of profiles and fixtures."""
        words = Vocabulary()
        for zone in "abc":
            words.label("topology.kubernetes.io/zone", zone)
        words.taints.update(
            dict.fromkeys(("dedicated=batch:NoSchedule", "spot:PreferNoSchedule", "down:NoExecute"))
        )
        for fixture in fixtures.of[Kind.NODES].values():
            words._read_node(fixture.manifest)
        for fixture in fixtures.of[Kind.PODS].values():
            words._read_pod(fixture.manifest)
        for profile in profiles:
            for rule in profile.predicates:
                words._read_rule(list(_expressions(rule)))
        return words

    def label(self, key: str, *values: str) -> None:
        """Add a label key and values for it."""
        self.labels.setdefault(key, {}).update(dict.fromkeys(values))

    def _read_node(self, manifest: Manifest) -> None:
        for key, value in manifest["metadata"].get("labels", {}).items():
            self.label(key, value)
        self.resources.update(dict.fromkeys(manifest.get("status", {}).get("allocatable", {})))
        self.resources.pop("pods", None)
        for taint in manifest.get("spec", {}).get("taints", []):
            self.taints[f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"] = None

    def _read_pod(self, manifest: Manifest) -> None:
        self.namespaces[manifest["metadata"].get("namespace", "default")] = None
        for key, value in manifest["spec"].get("nodeSelector", {}).items():
            self.label(key, value)
        for container in manifest["spec"].get("containers", []):
            self.resources.update(dict.fromkeys(container.get("resources", {}).get("requests", {})))

    def _read_rule(self, expressions: list[TypedExpr]) -> None:
        """Add the labels and resources that a rule looks up, with the texts and amounts it knows."""
        parts = [part for each in expressions for part in walk(each)]
        texts = [part.value for part in parts if isinstance(part, Const) and isinstance(part.value, str)]
        keys: dict[str, None] = {}
        for part in parts:
            if isinstance(part, CallOf) and part.function in _LOOKUPS and len(part.args) == 2:
                table, key = reversed(part.args) if part.function == "@in" else part.args
                if isinstance(key, Const) and isinstance(key.value, str):
                    if table.type.name == "resources":
                        self.resources[key.value] = None
                    elif table.type.name == "map":
                        keys[key.value] = None
        self.resources.pop("pods", None)
        values = [value for text in texts if text not in keys for value in _near(text)]
        for name in keys:
            self.label(name, *values)


def _near(text: str) -> Iterator[str]:
    """List a text, and where it is an amount the ones beside it; nothing that cannot be a label's value."""
    try:
        amount = parse_quantity(text)
        yield from (str(amount), str(amount + Quantity.of(1)), str(amount - Quantity.of(1)))
    except (ValueError, OverflowError):
        if 0 < len(text) <= 63 and text.replace("-", "").replace("_", "").replace(".", "").isalnum():
            yield text


def _expressions(rule: CheckedPredicate) -> Iterator[TypedExpr]:
    yield from rule.applies
    if rule.narrow is not None:
        yield rule.narrow.names
    for statement in rule.body:
        yield from _of_statement(statement)


def _of_statement(statement: CheckedStatement) -> Iterator[TypedExpr]:
    match statement:
        case CheckedLet():
            yield statement.value
        case CheckedForEach():
            yield statement.iterable
            if statement.where is not None:
                yield statement.where
            for inner in statement.body:
                yield from _of_statement(inner)
        case _:
            yield statement.condition
