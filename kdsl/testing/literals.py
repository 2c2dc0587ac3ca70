"""The places that rules read, each with the literals that they compare it with.

Names, loops and functions are followed: in `let t = pod.labels["team"]` the literals that are compared with
`t` belong to the label. A superfluous literal costs a draw, a missing one costs a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, TypeAlias

from kdsl.check.model.devices import CheckedInventory
from kdsl.check.model.rule_set import CheckedFn, CheckedForEach, CheckedLet, CheckedParam, RuleSet
from kdsl.check.model.traversal import children, expressions_of
from kdsl.check.model.typed import (
    Aggregate,
    Bind,
    CallFn,
    CallOf,
    Comprehension,
    Const,
    FieldOf,
    HasField,
    KeyOf,
    Typed,
    TypedExpr,
)
from kdsl.check.model.typed import Var as Variable
from kdsl.testing.samples import example

Literal: TypeAlias = bool | int | float | str

_COMPARISONS: Final = frozenset(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"))
_INDEXES: Final = frozenset(("_[_]", "_[?_]"))
_TABLES: Final = ("map", "resources", "dyn")
_LABELLED: Final = frozenset(("topology", "Cluster.topology", "spread", "nodeLabel"))
_SAME_VIEW: Final = {
    "QueuedPod": "Pod",
    "PlacedPod": "Pod",
    "DevicePod": "Pod",
    "DeviceTenant": "Pod",
    "AnyNode": "Node",
    "DeviceNode": "Node",
    "DeviceContainer": "Container",
}
_SAME_FIELD: Final = {
    ("Node", "requested"): ("Pod", "requests"),
    ("Node", "scoredRequests"): ("Pod", "requests"),
    ("Node", "usedHostPorts"): ("Pod", "hostPorts"),
    ("Node", "usedVolumes"): ("Pod", "volumes"),
    ("Node", "pods"): ("Node", "podCount"),
    ("Cluster", "nodes"): ("Cluster", "nodeCount"),
    ("Pod", "scoredRequests"): ("Pod", "requests"),
    ("Pod", "gates"): ("Pod", "schedulingGates"),
    ("SchedulingGate", "name"): ("Pod", "schedulingGates"),
    ("Pod", "containerCount"): ("Pod", "containers"),
    ("Container", "image"): ("Pod", "images"),
    ("Container", "requests"): ("Pod", "requests"),
    ("Container", "limits"): ("Pod", "limits"),
    ("Container", "amounts"): ("Pod", "limits"),
    ("Container", "limitAmounts"): ("Pod", "limits"),
}
"""Places that have one written form: the requested resources of a node are written as requests of pods."""

_SAMPLES: Final[Mapping[str, tuple[Literal, ...]]] = {
    "id": ("a", "b", "c"),
    "type": ("a", "b"),
    "mode": ("a", "b"),
    "healthy": (True, False),
    "index": (0, 1, 2),
    "numa": (0, 1),
    "slots": (1, 4),
    "memory": (1000, 16384),
    "cores": (100, 50),
    "attributes": ("a", "b"),
}
"""Values of a card's fields: an inventory does not state the type of the text that it reads."""


@dataclass(frozen=True, slots=True)
class Read:
    """A place that rules read: a field of a view, a key of it, and a path into JSON under the key."""

    view: str
    field: str
    key: str = ""
    path: tuple[str, ...] = ()

    @staticmethod
    def of(view: str, field: str) -> Read:
        """Return the place of a field under its written name."""
        view = _SAME_VIEW.get(view, view)
        return Read(*_SAME_FIELD.get((view, field), (view, field)))

    def at(self, key: str) -> Read:
        """Return the place of a key below this one."""
        if self.key:
            return Read(self.view, self.field, self.key, (*self.path, key))
        return Read(self.view, self.field, key)


@dataclass(frozen=True, slots=True)
class _Flow:
    """Places and literals that a value may come from."""

    reads: frozenset[Read] = frozenset()
    literals: frozenset[tuple[type, Literal]] = frozenset()

    def __or__(self, other: _Flow) -> _Flow:
        return _Flow(self.reads | other.reads, self.literals | other.literals)

    @property
    def texts(self) -> list[str]:
        return sorted(value for _, value in self.literals if isinstance(value, str))


@dataclass(slots=True)
class Literals:
    """The literals by the place that rules compare them with. `words` are the `reads` of the rules."""

    of_place: dict[Read, dict[Literal, None]] = field(default_factory=dict)
    linked: list[frozenset[Read]] = field(default_factory=list)
    words: set[str] = field(default_factory=set)

    @staticmethod
    def of(rules: RuleSet, parts: Iterable[object]) -> Literals:
        """Gather the places and literals of checked rules."""
        found = Literals()
        for part in parts:
            _Follower(found, rules, named_in(part)).follow(part)
        found._share()
        return found

    def reads(self, view: str, field: str) -> list[Read]:
        """Return the places of one field, in the order in which they were found."""
        return [each for each in self.of_place if (each.view, each.field) == (view, field)]

    def add(self, read: Read, *literals: Literal) -> None:
        self.of_place.setdefault(read, {}).update(dict.fromkeys(literals))

    def link(self, flow: _Flow) -> None:
        """Record that places and literals are compared with one another."""
        ordered = sorted(flow.literals, key=lambda each: (each[0].__name__, each[1]))
        for read in flow.reads:
            self.add(read, *(value for _, value in ordered))
        if len(flow.reads) > 1:
            self.linked.append(flow.reads)

    def _share(self) -> None:
        """Give places that are compared with one another the same literals."""
        for group in self.linked:
            shared = dict.fromkeys(value for read in sorted(group, key=str) for value in self.of_place[read])
            for read in group:
                self.add(read, *shared)
        self.of_place = dict(sorted(self.of_place.items(), key=lambda each: str(each[0])))


def parts_in(part: Any) -> Iterator[Any]:
    """Yield a checked rule and all dataclasses in it, but no parts of expressions."""
    if isinstance(part, tuple | list):
        for each in part:
            yield from parts_in(each)
    elif isinstance(part, Mapping):
        yield from parts_in(list(part.values()))
    elif is_dataclass(part) and not isinstance(part, Typed):
        yield part
        for each in fields(part):
            yield from parts_in(getattr(part, each.name))


def named_in(part: object) -> dict[int, TypedExpr]:
    """Return the expressions behind the names of a rule, by slot; for a loop's variable the iterated one."""
    named: dict[int, TypedExpr] = {}
    for each in parts_in(part):
        match each:
            case CheckedLet(variable=variable, value=value) | CheckedParam(variable=variable, value=value):
                named[variable.slot] = value
            case CheckedForEach(variables=variables, iterable=iterable):
                named.update((variable.slot, iterable) for variable in variables)
            case CheckedInventory(variable=variable, rows=rows):
                named[variable.slot] = rows
    return named


@dataclass(slots=True)
class _Follower:
    """Follows values through one rule or function."""

    found: Literals
    rules: RuleSet
    named: dict[int, TypedExpr]
    flows: dict[int, _Flow] = field(default_factory=dict)

    def follow(self, part: object) -> None:
        for each in parts_in(part):
            self.found.words.update(getattr(each, "reads", ()))
            if isinstance(each, CheckedInventory):
                for name, value in each.fields.values.items():
                    for read in self.flow(value).reads:
                        self.found.add(read, *_SAMPLES.get(name, ()))
        for expression in expressions_of(part):
            self.flow(expression)

    def flow(self, expr: TypedExpr) -> _Flow:
        """Return the sources of a value, and record the comparisons in it."""
        match expr:
            case Const(value=bool() | int() | float() | str() as value):
                return _Flow(literals=frozenset(((type(value), value),)))
            case Variable(slot=slot):
                return self._variable(slot)
            case FieldOf(operand=operand, view=view, field=name) | HasField(operand, view=view, field=name):
                self.flow(operand)
                read = Read.of(view, name)
                self.found.add(read)
                return _Flow(frozenset((read,)))
            case KeyOf(operand=operand, key=key):
                return self._keyed(self.flow(operand), [key])
            case Comprehension(iterable=iterable, variables=variables):
                self.named.update((variable.slot, iterable) for variable in variables)
            case Bind(variable=variable, value=value):
                self.named[variable.slot] = value
            case Aggregate(variable=variable):
                self.flows[variable.slot] = _Flow()
            case CallFn(fn=fn, args=args) if isinstance(self.rules.fns[fn], CheckedFn):
                return self._call(fn, [self.flow(arg) for arg in args])
            case CallOf():
                return self._operation(expr)
        return _union(self.flow(child) for child in children(expr))

    def _variable(self, slot: int) -> _Flow:
        if slot not in self.flows:
            self.flows[slot] = _Flow()
            if slot in self.named:
                self.flows[slot] = self.flow(self.named[slot])
        return self.flows[slot]

    def _keyed(self, table: _Flow, keys: Iterable[str]) -> _Flow:
        places = frozenset(read.at(key) for read in table.reads for key in keys)
        for read in places:
            self.found.add(read)
        return _Flow(places or table.reads, table.literals)

    def _call(self, fn: str, args: list[_Flow]) -> _Flow:
        declared = self.rules.fns[fn]
        assert isinstance(declared, CheckedFn)
        flows = {param.slot: arg for param, arg in zip(declared.params, args, strict=True)}
        return _Follower(self.found, self.rules, {}, flows).flow(declared.body)

    def _operation(self, expr: CallOf) -> _Flow:
        args = [self.flow(arg) for arg in expr.args]
        function, whole = expr.function, _union(args)
        if function in _INDEXES and expr.args[0].type.name in _TABLES:
            return self._keyed(args[0], args[1].texts)
        if function == "@in" and expr.args[1].type.name in _TABLES:
            self._keyed(args[1], args[0].texts)
            return _Flow()
        if function in _COMPARISONS or function == "@in":
            self.found.link(whole)
            return _Flow()
        if function in _TEXTS and len(args) == 2:
            literals = [text for given in args[1].texts for text in _TEXTS[function](given)]
            for read in args[0].reads:
                self.found.add(read, *literals)
            return _Flow()
        if function in _LABELLED:
            for key in args[0 if function != "Cluster.topology" else 1].texts:
                self.found.add(Read("Node", "labels", key))
        if function == "taint":
            for name, arg in zip(("key", "value", "effect"), args, strict=True):
                self.found.add(Read("Taint", name), *arg.texts)
        return whole


_TEXTS: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    "startsWith": lambda text: (f"{text}a", f"{text}b", text, text[:-1]),
    "endsWith": lambda text: (f"a{text}", text, text[1:]),
    "contains": lambda text: (f"a{text}a", text),
    "matches": lambda text: tuple(filter(None, (example(text),))),
}
"""By text function the values to try for its literal: texts for which it is true, and near misses."""


def _union(flows: Iterable[_Flow]) -> _Flow:
    whole = _Flow()
    for each in flows:
        whole |= each
    return whole
