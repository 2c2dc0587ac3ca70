"""The words of generated clusters: those of the fixtures, and those that the rules compare.

A random label decides nothing. The label that a rule reads decides, with the values it is compared to and
their neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kdsl.base.quantity import Quantity, parse_quantity
from kdsl.check.model.rule_set import RuleSet
from kdsl.testing.fixtures import FixtureKind, Fixtures
from kdsl.testing.literals import Literal, Literals, Read
from kdsl.testing.manifest import Manifest

ZONE: Final = "topology.kubernetes.io/zone"

_KEY: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""The valid names of a namespace, a service account or a node."""
_PLAIN: Final = ("a", "b")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(slots=True)
class Vocabulary:
    """The words for generated nodes and pods. Dictionaries are ordered sets."""

    literals: Literals = field(default_factory=Literals)
    labels: dict[str, dict[str, None]] = field(default_factory=dict)
    resources: dict[str, None] = field(default_factory=lambda: dict.fromkeys(("cpu", "memory")))
    taints: dict[str, None] = field(default_factory=dict)
    namespaces: dict[str, None] = field(default_factory=lambda: dict.fromkeys(("default",)))

    @staticmethod
    def of(rules: RuleSet, parts: Iterable[object], fixtures: Fixtures) -> Vocabulary:
        """Gather the words of checked rules and fixtures."""
        words = Vocabulary(Literals.of(rules, parts))
        words._label(ZONE, "a", "b", "c")
        words.taints.update(
            dict.fromkeys(("dedicated=batch:NoSchedule", "spot:PreferNoSchedule", "down:NoExecute"))
        )
        for fixture in fixtures.of[FixtureKind.NODES].values():
            words._read_node(fixture.manifest)
        for fixture in fixtures.of[FixtureKind.PODS].values():
            words._read_pod(fixture.manifest)
        words._read_rules()
        return words

    def reads(self, name: str, view: str = "Pod") -> bool:
        """Return whether some rule reads a field of a view."""
        return f"{view.lower()}.{name}" in self.literals.words or bool(self.literals.reads(view, name))

    def asks(self, *words: str) -> bool:
        """Return whether some rule reads the cluster's objects that one of the words names."""
        return not self.literals.words.isdisjoint(words)

    def keys(self, view: str, name: str) -> list[str]:
        """Return the keys of a map that rules look up, and texts that they compare its keys with."""
        reads = self.literals.reads(view, name)
        found = dict.fromkeys(read.key for read in reads if read.key)
        found.update(dict.fromkeys(text for text in self._texts(Read(view, name)) if text))
        return [key for key in found if _KEY.fullmatch(key)]

    def texts(self, view: str, name: str, key: str = "", *, values: re.Pattern[str] = _VALUE) -> list[str]:
        """Return texts for a place: those that rules compare it with, and another one."""
        found = dict.fromkeys(self._texts(Read(view, name, key)))
        if key:
            found.update(dict.fromkeys(self._texts(Read(view, name))))
        return [text for text in (*(found or _PLAIN), "other") if values.fullmatch(text)]

    def numbers(self, view: str, name: str, *others: int) -> list[int]:
        """Return whole numbers for a place: those that rules compare it with, their neighbours, and
        others.
        """
        found: dict[int, None] = {}
        for literal in self.literals.of_place.get(Read(view, name), ()):
            amount = _amount(literal)
            if amount is not None:
                whole = amount.value()
                found.update(dict.fromkeys((whole, whole + 1, whole - 1)))
        return list({**found, **dict.fromkeys(others)})

    def amounts(self, view: str, name: str, resource: str, *others: str) -> list[str]:
        """Return amounts of a resource: those that rules compare it with, their neighbours, and others."""
        found: dict[str, None] = {}
        for key in (resource, ""):
            for literal in self.literals.of_place.get(Read(view, name, key), ()):
                found.update(dict.fromkeys(_beside(literal, is_whole=resource != "cpu")))
        return [text for text in {**found, **dict.fromkeys(others)} if not text.startswith("-")]

    def at(self, read: Read) -> list[Literal]:
        """Return the values of a place inside JSON, thresholds with their neighbours."""
        found: dict[Literal, None] = {}
        for literal in self.literals.of_place.get(read, ()):
            found[literal] = None
            if isinstance(literal, int) and not isinstance(literal, bool):
                found.update(dict.fromkeys((literal + 1, literal - 1)))
        return list(found or dict.fromkeys((0, 1, 1000, "a", True)))

    def _texts(self, read: Read) -> Iterator[str]:
        for literal in self.literals.of_place.get(read, ()):
            if isinstance(literal, bool):
                yield from ("true", "false")
            elif isinstance(literal, str):
                yield literal
            if not isinstance(literal, bool) and _amount(literal) is not None:
                yield from _beside(literal, is_whole=True)

    def _label(self, key: str, *values: str) -> None:
        """Add a label key of nodes and values for it."""
        self.labels.setdefault(key, {}).update(dict.fromkeys(values))

    def _read_node(self, manifest: Manifest) -> None:
        for key, value in manifest["metadata"].get("labels", {}).items():
            self._label(key, value)
        self.resources.update(dict.fromkeys(manifest.get("status", {}).get("allocatable", {})))
        for taint in manifest.get("spec", {}).get("taints", []):
            self.taints[f"{taint['key']}={taint.get('value', '')}:{taint['effect']}"] = None

    def _read_pod(self, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        self.namespaces[metadata.get("namespace", "default")] = None
        for name in ("labels", "annotations"):
            for key, value in metadata.get(name, {}).items():
                self.literals.add(Read("Pod", name, key), value)
        for key, value in manifest["spec"].get("nodeSelector", {}).items():
            self._label(key, value)
        for container in manifest["spec"].get("containers", []):
            self.resources.update(dict.fromkeys(container.get("resources", {}).get("requests", {})))

    def _read_rules(self) -> None:
        for key in self.keys("Node", "labels"):
            self._label(key, *self.texts("Node", "labels", key))
        for view, name in (("Pod", "requests"), ("Node", "allocatable")):
            self.resources.update(dict.fromkeys(read.key for read in self.literals.reads(view, name)))
            self.resources.update(
                dict.fromkeys(text for text in self._texts(Read(view, name)) if "/" in text)
            )
        wanted = [name for name in self.resources if _KEY.fullmatch(name) and name != "pods"]
        self.resources = dict.fromkeys(wanted)
        self.namespaces.update(dict.fromkeys(self.texts("Pod", "namespace", values=NAME)))
        for key in self._of_taint("key") or list(_PLAIN):
            for value in self._of_taint("value") or [""]:
                # Rules differ in the effects they read, so each taint comes with every effect.
                self.taints.update(dict.fromkeys(f"{key}={value}:{effect}" for effect in _EFFECTS))

    def _of_taint(self, name: str) -> list[str]:
        """Return the texts that rules compare keys or values of taints and tolerations with."""
        found = dict.fromkeys(
            text for view in ("Taint", "Toleration") for text in self._texts(Read(view, name))
        )
        valid = _KEY if name == "key" else _VALUE
        return [text for text in found if valid.fullmatch(text)]


def _amount(literal: Literal) -> Quantity | None:
    """Return the number that a literal denotes, if any."""
    try:
        if isinstance(literal, bool):
            return None
        return parse_quantity(literal) if isinstance(literal, str) else parse_quantity(f"{literal:.9f}")
    except (ValueError, OverflowError):
        return None


def _beside(literal: Literal, *, is_whole: bool) -> Iterator[str]:
    """Yield an amount and the next ones on both sides, one away for a whole number."""
    amount = _amount(literal)
    if amount is None:
        return
    if is_whole:
        # Plain digits: as a text it may be read by `int`, which accepts no suffix.
        yield from (str(amount.value() + step) for step in (0, 1, -1))
        return
    steps = (Quantity.of_milli(1), Quantity.of(1))
    try:
        yield str(amount)
        yield from (str(each) for step in steps for each in (amount + step, amount - step))
    except OverflowError:
        return
