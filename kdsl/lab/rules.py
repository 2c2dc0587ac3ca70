"""The rules of a run: a profile with other values for some parameters, checked like any rule file.

Values are written into a rule file that extends the profile, so a wrong name or type is the checker's
diagnostic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from kdsl.app import check_rules, find_profile
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.cluster.devices.typical import TypicalPod
from kdsl.lab.rule_places import FILE, PROFILE, Piece, Written, placed
from kdsl.lang.yaml_tree import YamlNode, YamlScalar
from kdsl.report.profile import profile_text

Value: TypeAlias = bool | int | float | str
"""A value of a parameter: a number, a bool, or the text of an expression."""

TYPICAL: Final = "typicalPods"
"""The word in a value for the typical pods of the trace."""
SUPPLY: Final = "cardsByModel"
"""The word in a value for the number of cards of each model in the trace."""
NO_SUPPLY: Final[Mapping[str, int]] = MappingProxyType({})
_PACKAGE: Final = "lab.run"
_PROFILE: Final = "run"


class _Rule(Protocol):
    """A rule or device, which has a text."""

    @property
    def span(self) -> Span: ...


@dataclass(frozen=True, slots=True)
class RunRules:
    """Checked rules, the profile to run, and the digest of its rules and values."""

    rules: RuleSet
    profile: str
    digest: str


def rules_of(
    profile: str,
    values: Mapping[str, Value],
    typical: Sequence[TypicalPod],
    paths: Sequence[Path] = (),
    supply: Mapping[str, int] = NO_SUPPLY,
    written: Written | None = None,
) -> RunRules:
    """Check a profile of the rule files in `paths`, else of the shipped ones, with values for `Rule.param`.

    `typical` and `supply` replace the words `TYPICAL` and `SUPPLY` in values. Raises InvalidInputError with
    the diagnostics; their places are those of `written`, if it is given.
    """
    draft = _Draft(written)
    try:
        draft.add(f"kdsl 1\npackage {_PACKAGE}\n")
        if package := _package(profile):
            draft.add("import ")
            draft.piece(package, written.profile if written else None, 0)
            draft.add(" as base\n")
        base = draft.checked(paths)
        if not base.profiles:
            help_ = "write its package in front, as in `policies.atc23.fgd.fgd`"
            title = f"there is no profile `{profile}`"
            raise InvalidInputError([Diagnostic(CheckCode.UNKNOWN_NAME, title, where=PROFILE, help=(help_,))])
        found = find_profile(base, profile, PROFILE)
        if not values:
            return RunRules(base, found.qualified, base.digest)
        words = {TYPICAL: _typical_text(typical), SUPPLY: json.dumps(dict(supply))}
        draft = _Draft(written)
        _overlay(found, {name: _written(value, words) for name, value in values.items()}, draft)
        rules = draft.checked(paths)
        return RunRules(rules, f"{_PACKAGE}.{_PROFILE}", rules.digest)
    except InvalidInputError as error:
        if written is None:
            raise
        raise InvalidInputError(tuple(placed(error.diagnostics, draft.pieces, written))) from error


def text_of(checked: RunRules) -> str:
    """Return the effective profile of a run as `kdsl show` prints it, and below it the text of its scores,
    predicates and devices, each with its origin.
    """
    profile = checked.rules.profiles[checked.profile]
    rules: tuple[_Rule, ...] = (
        *(entry.score for entry in profile.scores),
        *profile.predicates,
        *(profile.sharing.devices if profile.sharing else ()),
    )
    bodies = (f"// {rule.span.site}\n{rule.span.text.rstrip()}\n" for rule in rules)
    return "\n".join((f"{profile_text(profile)}\n", *bodies))


@dataclass(slots=True)
class _Draft:
    """The text of a rule file, with the pieces that come from what was written."""

    written: Written | None
    text: str = ""
    pieces: list[Piece] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.text += text

    def piece(self, text: str, node: YamlNode | None, shift: int | None) -> None:
        """Add the characters of a node from `shift` on, or others that stand for the whole node."""
        if node is not None:
            self.pieces.append(Piece(len(self.text), len(self.text) + len(text), node, shift))
        self.text += text

    def setting(self, name: str, param: str, value: str) -> None:
        """Add `set param = value`; the name of the parameter in an experiment ends in `param`."""
        key, node = (self.written.values.get(name) if self.written else None) or (None, None)
        self.add("  set ")
        self.piece(param, key, len(name) - len(param))
        self.add(" = ")
        is_same = isinstance(node, YamlScalar) and node.text == value
        self.piece(value, node, 0 if is_same else None)
        self.add("\n")

    def checked(self, paths: Sequence[Path]) -> RuleSet:
        checked = check_rules((*paths, FILE), drafts={FILE: self.text.encode()})
        errors = [each for each in checked.diagnostics if each.is_error]
        if errors or checked.rules is None:
            raise InvalidInputError(errors)
        return checked.rules


def _overlay(profile: CheckedProfile, values: Mapping[str, str], draft: _Draft) -> None:
    """Write the rule file of a profile that extends another and sets values."""
    devices = profile.sharing.devices if profile.sharing else ()
    of_devices: dict[str, dict[str, str]] = {device.name: {} for device in devices}
    others: dict[str, str] = {}
    for name, value in values.items():
        of_devices.get(name.rpartition(".")[0], others)[name] = value
    imports = {_package(profile.qualified): "base"}
    for device in devices:
        imports.setdefault(_package(device.qualified), f"devices{len(imports)}")
    draft.add(f"kdsl 1\npackage {_PACKAGE}\n")
    for name, short in imports.items():
        draft.add(f"import {name} as {short}\n")
    for device in devices:
        if of_devices[device.name]:
            base = f"{imports[_package(device.qualified)]}.{device.name}"
            draft.add(f"device {device.name} extends {base} {{\n")
            for name, value in of_devices[device.name].items():
                draft.setting(name, name.rpartition(".")[2], value)
            draft.add("}\n")
    draft.add(f'profile {_PROFILE} extends base.{profile.name} {{\n  scheduler "lab"\n')
    if any(of_devices.values()):
        named = (
            device.name if of_devices[device.name] else f"{imports[_package(device.qualified)]}.{device.name}"
            for device in devices
        )
        draft.add(f"  devices {', '.join(named)}\n")
    for name, value in others.items():
        draft.setting(name, name, value)
    draft.add("}\n")


def _package(qualified: str) -> str:
    return qualified.rpartition(".")[0]


def _written(value: Value, words: Mapping[str, str]) -> str:
    """Return the text of a value in the rule language; `words` have texts of their own."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return words.get(value, value)
    return repr(value)


def _typical_text(typical: Iterable[TypicalPod]) -> str:
    calls = (
        f"typicalPod({pod.weight!r}, {pod.cpu}, {pod.cards}, {pod.share}, {json.dumps(list(pod.models))})"
        for pod in typical
    )
    return f"[{', '.join(calls)}]"
