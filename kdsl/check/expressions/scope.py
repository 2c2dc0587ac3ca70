"""Names in scope and the slots of their values: one `SlotFrame` per rule, function or loose expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kdsl.base.span import Span
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.check.model.types import BindingTime, Type


@dataclass(slots=True)
class SlotFrame:
    """Allocates slots; `size` is the number of slots that a frame of values needs."""

    size: int = 0

    def variable(self, name: str, type_: Type, time: BindingTime, reads: frozenset[str], span: Span) -> Var:
        """Return a variable in a slot of its own."""
        slot, self.size = self.size, self.size + 1
        return Var(type=type_, time=time, reads=reads, span=span, name=name, slot=slot)


@dataclass(frozen=True, slots=True)
class Scope:
    """Variables by name, and the scope around them."""

    frame: SlotFrame
    parent: Scope | None = None
    names: dict[str, Var] = field(default_factory=dict)

    def lookup(self, name: str) -> Var | None:
        """Return the innermost variable of that name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def declare(self, name: str, type_: Type, like: TypedExpr, span: Span) -> Var:
        """Add a variable with the binding time and the reads of `like`."""
        return self.add(name, type_, like.time, like.reads, span)

    def add(self, name: str, type_: Type, time: BindingTime, reads: frozenset[str], span: Span) -> Var:
        """Add a variable. It shadows an earlier one of its name; the caller refuses that where necessary."""
        variable = self.frame.variable(name, type_, time, reads, span)
        self.names[name] = variable
        return variable

    def child(self) -> Scope:
        """Return an empty scope inside this one, on the same frame."""
        return Scope(self.frame, self)

    def visible(self) -> Iterator[str]:
        """Yield the names in scope."""
        yield from self.names
        if self.parent is not None:
            yield from self.parent.visible()
