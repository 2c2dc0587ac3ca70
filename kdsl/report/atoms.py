"""Atoms and changes as text: the deciding conditions with their values, and changes that would help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kdsl.base.quantity import Quantity
from kdsl.base.resources import quantity_of
from kdsl.check.model.types import BOOL
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.explain.atoms import Atom, Shown
from kdsl.explain.worlds import Freed, WorldChange
from kdsl.report.amounts import quantity_text
from kdsl.report.values import ValuePrinter

_LONGEST = 60
"""The longest value of an operand, in characters; a longer one is replaced by its expression."""
_LONGEST_ITEM = 100
"""The longest value of a loop item, in characters; a longer one is replaced by its name."""
_SLIGHT = 1e-4
"""The smallest relative difference of rounded amounts: closer ones could look equal, so they are exact."""


@dataclass(frozen=True, slots=True)
class AtomPrinter:
    """Prints atoms; amounts in Kubernetes notation, other values as CEL literals."""

    values: ValuePrinter

    def text(self, atom: Atom) -> str:
        """Return an atom with its values, and the values of its loop items that it does not show."""
        if atom.error:
            return f"{atom.source}: {atom.error}"
        return " ".join([self.substituted(atom), *self._items(atom)])

    def substituted(self, atom: Atom) -> str:
        """Return an atom with values in place of its operands."""
        if not atom.parts:
            return atom.source
        if len(atom.parts) == 1:
            return f"{atom.source} = {_bool(atom.holds)}"
        exact = atom.shortage is not None and atom.shortage < _SLIGHT
        text = "".join(
            part if isinstance(part, str) else self._value(part, exact=exact) or part.source
            for part in atom.parts
        )
        return f"{text} holds" if atom.holds else text

    def _items(self, atom: Atom) -> Iterable[str]:
        shown = {part.source for part in atom.parts if isinstance(part, Shown) and self._value(part)}
        items = {item.source: item for item in atom.items if item.source not in shown}
        known = {name: self._value(item, _LONGEST_ITEM) or _name(item) for name, item in items.items()}
        texts = [f"{name} = {value}" for name, value in known.items() if value]
        return [f"({', '.join(texts)})"] if texts else []

    def _value(self, shown: Shown, longest: int = _LONGEST, exact: bool = False) -> str:
        """Return the text of a value; empty if it is too long."""
        if isinstance(shown.value, Quantity):
            return quantity_text(shown.value, exact)
        if shown.type == BOOL or isinstance(shown.value, bool):
            return _bool(bool(shown.value))
        if isinstance(shown.value, PodAffinityTerm | SpreadConstraint):
            return _selection(shown.value)
        text = self.values.text(shown.value, shown.type)
        return text if len(text) <= longest else ""


def step_text(step: WorldChange) -> str:
    """Return a step: a change in the syntax of `--what-if`, else a description."""
    if isinstance(step, Freed):
        return f"{quantity_of(step.resource, step.amount).written} {step.resource} freed on {step.node}"
    return step.text


def steps_text(steps: Iterable[WorldChange]) -> str:
    """Return steps that are all needed."""
    return " and ".join(map(step_text, steps))


def _name(shown: Shown) -> str:
    """Return the name of an object; empty without one."""
    value = shown.value
    if isinstance(value, PodInfo):
        return f"pod {value.key}"
    return f"node {value.name}" if isinstance(value, NodeInfo) else ""


def _selection(term: PodAffinityTerm | SpreadConstraint) -> str:
    """Return what a term or constraint selects, and the label that makes the domains."""
    selector = term.selector
    if selector is None:
        who = "no pods"
    else:
        who = "all pods" if selector.selects_everything else f"pods with {selector.text}"
    where = _namespaces(term) if isinstance(term, PodAffinityTerm) else ""
    return f"{who}{where} per {term.topology_key}"


def _namespaces(term: PodAffinityTerm) -> str:
    among, names = term.namespace_selector, sorted(term.namespaces)
    if among is None:
        return f" in namespace{'s' if len(names) > 1 else ''} {' or '.join(names)}"
    if among.selects_everything:
        return " in all namespaces"
    return f" in namespaces {' or '.join((*names, f'with {among.text}'))}"


def _bool(value: bool) -> str:
    return "true" if value else "false"
