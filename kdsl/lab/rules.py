"""The rules of a run: a profile with other values for some parameters, checked like any rule file.

Values are written into a rule file that extends the profile, so a wrong name or type is the checker's
diagnostic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from kdsl.app import check_rules, find_profile
from kdsl.base.errors import InvalidInputError
from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.cluster.devices.typical import TypicalPod
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
_FILE: Final = Path("lab-run.kdsl")


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
) -> RunRules:
    """Check a profile of the rule files in `paths`, else of the shipped ones, with values for `Rule.param`.

    `typical` and `supply` replace the words `TYPICAL` and `SUPPLY` in values. Raises
    InvalidInputError with the diagnostics.
    """
    draft = {_FILE: f"kdsl 1\npackage {_PACKAGE}\nimport {_package(profile)} as base\n".encode()}
    base = _checked((*paths, _FILE), draft)
    found = find_profile(base, profile, "profile")
    if not values:
        return RunRules(base, found.qualified, base.digest)
    words = {TYPICAL: _typical_text(typical), SUPPLY: json.dumps(dict(supply))}
    text = _overlay(found, {name: _written(value, words) for name, value in values.items()})
    rules = _checked((*paths, _FILE), {_FILE: text.encode()})
    return RunRules(rules, f"{_PACKAGE}.{_PROFILE}", rules.digest)


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


def _checked(paths: Sequence[Path], drafts: Mapping[Path, bytes]) -> RuleSet:
    checked = check_rules(paths, drafts=drafts)
    errors = [each for each in checked.diagnostics if each.is_error]
    if errors or checked.rules is None:
        raise InvalidInputError(errors)
    return checked.rules


def _overlay(profile: CheckedProfile, values: Mapping[str, str]) -> str:
    """Return the rule file of a profile that extends another and sets values."""
    devices = profile.sharing.devices if profile.sharing else ()
    own = {device.name: device for device in devices}
    of_devices: dict[str, list[str]] = {name: [] for name in own}
    sets: list[str] = []
    for name, value in values.items():
        rule, _, param = name.rpartition(".")
        if rule in of_devices:
            of_devices[rule].append(f"  set {param} = {value}")
        else:
            sets.append(f"  set {name} = {value}")
    imports = {_package(profile.qualified): "base"}
    for device in devices:
        imports.setdefault(_package(device.qualified), f"devices{len(imports)}")
    lines = [
        "kdsl 1",
        f"package {_PACKAGE}",
        *(f"import {name} as {short}" for name, short in imports.items()),
    ]
    for device in devices:
        if of_devices[device.name]:
            base = f"{imports[_package(device.qualified)]}.{device.name}"
            lines += [f"device {device.name} extends {base} {{", *of_devices[device.name], "}"]
    lines += [f"profile {_PROFILE} extends base.{profile.name} {{", '  scheduler "lab"']
    if any(of_devices.values()):
        named = (
            device.name if of_devices[device.name] else f"{imports[_package(device.qualified)]}.{device.name}"
            for device in devices
        )
        lines.append(f"  devices {', '.join(named)}")
    return "\n".join([*lines, *sets, "}", ""])


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
