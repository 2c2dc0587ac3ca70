"""Node selectors: required and preferred node affinity, in the form that rules read.

Facts of k8s.io/component-helpers/scheduling/corev1/nodeaffinity: terms are alternatives, the requirements of
a term must all hold, a term without requirements matches nothing, and a term that cannot be parsed is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import reduce
from operator import and_, or_
from typing import Final, Protocol

import numpy as np
from msgspec import Struct

from kdsl.cluster.api.names import is_label_key, is_label_value
from kdsl.cluster.api.objects import NodeSelectorRequirement, NodeSelectorSpec, NodeSelectorTerm
from kdsl.cluster.objects.node_columns import Mask, NodeColumns, none_of

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64: Final = range(-(2**63), 2**63)
_NAME_FIELD: Final = "metadata.name"


class Operator(StrEnum):
    """The comparison of a requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


_OPERATORS: Final = {operator.value: operator for operator in Operator}


class Selectable(Protocol):
    """An object that selectors match: a node."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


class LabelRequirement(Struct, frozen=True):
    """A condition on one label; `bound` is the value of Gt and Lt."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()
    bound: int = 0

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether the label of `labels` meets this condition. NotIn holds for an absent label."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                number = None if value is None else integer_of(value)
                if number is None:
                    return False
                return number > self.bound if self.operator is Operator.GT else number < self.bound

    @property
    def text(self) -> str:
        """Return the condition as `kubectl get --selector` takes it."""
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.GT | Operator.LT:
                return f"{self.key} {'>' if self.operator is Operator.GT else '<'} {self.bound}"
        values, is_in = sorted(self.values), self.operator is Operator.IN
        if len(values) == 1:
            return f"{self.key}{'=' if is_in else '!='}{values[0]}"
        return f"{self.key} {'in' if is_in else 'notin'} ({','.join(values)})"

    def holds_over(self, nodes: NodeColumns) -> Mask:
        match self.operator:
            case Operator.IN:
                return nodes.has_label_in(self.key, self.values)
            case Operator.NOT_IN:
                return ~nodes.has_label_in(self.key, self.values)
            case Operator.EXISTS:
                return nodes.has_label(self.key)
            case Operator.DOES_NOT_EXIST:
                return ~nodes.has_label(self.key)
            case Operator.GT | Operator.LT:
                numbers, known = nodes.label_numbers(self.key)
                return known & (
                    numbers > self.bound if self.operator is Operator.GT else numbers < self.bound
                )


class FieldRequirement(Struct, frozen=True):
    """A condition on a field of the node. Only metadata.name has a value; any other field is empty."""

    field: str
    is_equal: bool
    value: str

    @property
    def text(self) -> str:
        """Return the condition as `kubectl get --field-selector` takes it."""
        return f"{self.field}{'=' if self.is_equal else '!='}{self.value}"

    def holds(self, name: str) -> bool:
        return ((name if self.field == _NAME_FIELD else "") == self.value) is self.is_equal

    def holds_over(self, nodes: NodeColumns) -> Mask:
        if self.field != _NAME_FIELD:
            return np.full(len(nodes), self.holds(""))
        named = nodes.is_named(self.value)
        return named if self.is_equal else ~named


class SelectorTerm(Struct, frozen=True):
    """Conditions that must all hold; there is at least one."""

    labels: tuple[LabelRequirement, ...]
    fields: tuple[FieldRequirement, ...]

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The label keys that decide whether a node matches; None where other facts decide, too."""
        return None if self.fields else frozenset(one.key for one in self.labels)

    @property
    def text(self) -> str:
        """Return the conditions in words."""
        labels = [one.text for one in self.labels]
        return " and ".join((*labels, *(one.text for one in self.fields)))

    def matches(self, node: Selectable) -> bool:
        labels = node.labels
        for one in self.labels:  # few, and often asked, like the fields and the terms of selectors
            if not one.holds(labels):
                return False
        for field in self.fields:  # noqa: SIM110
            if not field.holds(node.name):
                return False
        return True

    def matches_over(self, nodes: NodeColumns) -> Mask:
        masks = [one.holds_over(nodes) for one in self.labels]
        return reduce(and_, masks + [one.holds_over(nodes) for one in self.fields])


class NodeSelector(Struct, frozen=True):
    """Required node affinity.

    `node_names` are the only nodes that can match where every term names nodes, else None.
    """

    terms: tuple[SelectorTerm, ...]
    node_names: tuple[str, ...] | None

    @staticmethod
    def of(spec: NodeSelectorSpec) -> NodeSelector:
        """Convert a node selector of the API."""
        terms = (read_term(term) for term in spec.node_selector_terms)
        return NodeSelector(
            tuple(term for term in terms if term is not None), _node_names(spec.node_selector_terms)
        )

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The label keys that decide whether a node matches; None where other facts decide, too."""
        keys = [term.label_keys for term in self.terms]
        known = [each for each in keys if each is not None]
        return frozenset[str]().union(*known) if len(known) == len(keys) else None

    @property
    def text(self) -> str:
        """Return the terms in words; empty without terms, which match no node."""
        return " or ".join(term.text for term in self.terms)

    def matches(self, node: Selectable) -> bool:
        """Return whether some term matches `node`."""
        for term in self.terms:  # noqa: SIM110
            if term.matches(node):
                return True
        return False

    def matches_over(self, nodes: NodeColumns) -> Mask:
        """Return which of `nodes` some term matches."""
        return reduce(or_, [term.matches_over(nodes) for term in self.terms], none_of(nodes))


class NodeRequirement(Struct, frozen=True):
    """A condition on a label or a field of nodes, as rules write it."""

    key: str
    operator: str
    values: tuple[str, ...]
    is_field: bool

    @staticmethod
    def on_label(key: str, operator: str, values: Iterable[str]) -> NodeRequirement:
        """Return a condition as in matchExpressions."""
        return NodeRequirement(key, operator, tuple(values), is_field=False)

    @staticmethod
    def on_field(field: str, operator: str, values: Iterable[str]) -> NodeRequirement:
        """Return a condition as in matchFields."""
        return NodeRequirement(field, operator, tuple(values), is_field=True)


class NodeTerm(Struct, frozen=True):
    """A term of a node selector; without requirements, or with an invalid one, it matches nothing."""

    term: SelectorTerm | None

    @staticmethod
    def of(requirements: Iterable[NodeRequirement]) -> NodeTerm:
        """Return the term of these requirements."""
        read = NodeSelectorTerm()
        for one in requirements:
            listed = read.match_fields if one.is_field else read.match_expressions
            listed.append(NodeSelectorRequirement(one.key, one.operator, list(one.values)))
        return NodeTerm(read_term(read))

    @property
    def label_keys(self) -> frozenset[str] | None:
        """The label keys that decide whether a node matches; None where other facts decide, too."""
        return frozenset() if self.term is None else self.term.label_keys

    def matches(self, node: Selectable) -> bool:
        """Return whether the term matches `node`."""
        return self.term is not None and self.term.matches(node)

    def matches_over(self, nodes: NodeColumns) -> Mask:
        """Return which of `nodes` the term matches."""
        return none_of(nodes) if self.term is None else self.term.matches_over(nodes)

    def weighing(self, weight: int) -> PreferredNodeTerm:
        """Return the term as a preference with a weight."""
        return PreferredNodeTerm(self.term, weight)


class PreferredNodeTerm(NodeTerm, frozen=True):
    """Preferred node affinity: nodes that match get `weight`. An empty preference matches nothing."""

    weight: int


def read_term(term: NodeSelectorTerm) -> SelectorTerm | None:
    """Convert a term of the API; None for one without requirements, or with an invalid one."""
    labels = [_label_requirement(one) for one in term.match_expressions]
    fields = [_field_requirement(one) for one in term.match_fields]
    if not labels and not fields:
        return None
    read_labels = tuple(one for one in labels if one is not None)
    read_fields = tuple(one for one in fields if one is not None)
    if len(read_labels) < len(labels) or len(read_fields) < len(fields):
        return None
    return SelectorTerm(read_labels, read_fields)


def _label_requirement(spec: NodeSelectorRequirement) -> LabelRequirement | None:
    operator = _OPERATORS.get(spec.operator)
    if operator is None or not is_label_key(spec.key) or not all(map(is_label_value, spec.values)):
        return None
    match operator:
        case Operator.IN | Operator.NOT_IN:
            return LabelRequirement(spec.key, operator, frozenset(spec.values)) if spec.values else None
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            return None if spec.values else LabelRequirement(spec.key, operator)
        case Operator.GT | Operator.LT:
            bound = integer_of(spec.values[0]) if len(spec.values) == 1 else None
            return None if bound is None else LabelRequirement(spec.key, operator, bound=bound)


def _field_requirement(spec: NodeSelectorRequirement) -> FieldRequirement | None:
    if spec.operator not in (Operator.IN, Operator.NOT_IN) or len(spec.values) != 1:
        return None
    return FieldRequirement(spec.key, spec.operator == Operator.IN, spec.values[0])


def _node_names(terms: Iterable[NodeSelectorTerm]) -> tuple[str, ...] | None:
    """Return the names that the terms allow, in written order; None where some term allows any name."""
    names: dict[str, None] = {}
    has_terms = False
    for term in terms:
        has_terms = True
        named = [
            one.values for one in term.match_fields if one.key == _NAME_FIELD and one.operator == Operator.IN
        ]
        if not named:
            return None
        names.update(dict.fromkeys(name for name in named[0] if all(name in more for more in named)))
    return tuple(names) if has_terms else None


def is_integer(text: str) -> bool:
    """Return whether Gt and Lt can compare with `text`."""
    return integer_of(text) is not None


def integer_of(text: str) -> int | None:
    """Parse a decimal int64 as Go does; None for any other text."""
    if len(text) > 64 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INT64 else None
