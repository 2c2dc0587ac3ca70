"""Devices that extend others: the statements of the base with other values for its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kdsl.base.diagnostic import Diagnostic, Label, did_you_mean
from kdsl.check.expressions.mismatch import listing
from kdsl.check.model.codes import CheckCode
from kdsl.check.names.declarations import Declarations, Home, Located
from kdsl.lang.device_tree import ReplaceParam, Resource
from kdsl.lang.tree import Device, OrderBy, Param, Value


@dataclass(frozen=True, slots=True)
class Replacement:
    """A `set` of a derived device and the file it stands in."""

    statement: ReplaceParam
    home: Home


@dataclass(frozen=True, slots=True)
class Folded:
    """A device with the devices that it extends: `root` has the statements, `replaced` new values.

    `order` and `value`, if present, replace those of the root; each comes with its file.
    """

    root: Located[Device]
    replaced: Mapping[str, Replacement] = field(default_factory=dict)
    order: tuple[OrderBy, Home] | None = None
    value: tuple[Value, Home] | None = None


def fold(
    located: Located[Device], declarations: Declarations, diagnostics: list[Diagnostic]
) -> Folded | None:
    """Follow `extends` to the device with statements; None if a diagnostic was reported."""
    replaced: dict[str, Replacement] = {}
    order: tuple[OrderBy, Home] | None = None
    value: tuple[Value, Home] | None = None
    seen = [located]
    while (base := seen[-1].declaration.extends) is not None:
        here = seen[-1]
        found = declarations.find(Device, base.text, here.home)
        if found is None:
            diagnostics.append(declarations.undeclared(Device, base, here.home))
            return None
        if any(each.declaration is found.declaration for each in seen):
            if found.declaration is located.declaration:
                diagnostics.append(_cycle(located))
            return None
        for statement in here.declaration.body:
            if isinstance(statement, ReplaceParam):
                replaced.setdefault(statement.name.text, Replacement(statement, here.home))
            elif isinstance(statement, OrderBy):
                order = order or (statement, here.home)
            elif isinstance(statement, Value):
                value = value or (statement, here.home)
        seen.append(found)
    diagnostics.extend(_misplaced(located))
    if len(seen) > 1:
        diagnostics.extend(_unknown(located, seen[-1]))
    return Folded(seen[-1], replaced, order, value)


def _cycle(located: Located[Device]) -> Diagnostic:
    name = located.declaration.name
    return Diagnostic(
        CheckCode.PROFILE_CYCLE, f"device `{name.text}` extends itself", name.span, "the cycle begins here"
    )


def _misplaced(located: Located[Device]) -> Iterator[Diagnostic]:
    """Report statements that a device with `extends` may not have, and `set` in one without."""
    device = located.declaration
    for statement in device.body:
        if device.extends is None and isinstance(statement, ReplaceParam):
            title = f"`set {statement.name.text}` stands in a device that extends none"
            help_ = ("change the parameter where it is declared",)
            yield Diagnostic(CheckCode.MISPLACED, title, statement.span, "nothing to replace", help=help_)
        elif device.extends is not None and not isinstance(statement, ReplaceParam | OrderBy | Value):
            title = "a device that extends another sets parameters, and may have an `order by` and a `value`"
            help_ = ("declare a parameter in the base, and let its statements depend on it",)
            yield Diagnostic(CheckCode.MISPLACED, title, statement.span, "the base has it all", help=help_)


def _unknown(located: Located[Device], root: Located[Device]) -> Iterator[Diagnostic]:
    params = {each.name.text: each for each in root.declaration.body if isinstance(each, Param | Resource)}
    for statement in located.declaration.body:
        if not isinstance(statement, ReplaceParam):
            continue
        name = statement.name
        param = params.get(name.text)
        if param is None:
            title = f"`{root.name}` has no parameter `{name.text}`"
            help_ = did_you_mean(name.text, params) or listing("it has", sorted(params))
            yield Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, "not a parameter", help=help_)
        elif isinstance(param, Param) and param.final:
            label = (Label(param.name.span, "declared here"),)
            title = f"`{root.name}.{name.text}` is final"
            yield Diagnostic(CheckCode.FINAL, title, statement.span, "cannot be set", secondary=label)
