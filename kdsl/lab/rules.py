"""The rules of a run: a profile with other values for some parameters, checked like any rule file.

Values are written into a rule file that extends the profile, so a wrong name or type is the checker's
diagnostic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from kdsl.app import check_rules, find_profile
from kdsl.base.errors import InvalidInputError
from kdsl.check.model.rule_set import CheckedProfile, RuleSet
from kdsl.cluster.devices.typical import TypicalPod

Value: TypeAlias = bool | int | float | str
"""A value of a parameter: a number, a bool, or the text of an expression."""

TYPICAL: Final = "typicalPods"
"""The word in a value for the typical pods of the trace."""
_PACKAGE: Final = "lab.run"
_PROFILE: Final = "run"
_FILE: Final = Path("lab-run.kdsl")


@dataclass(frozen=True, slots=True)
class RunRules:
    """Checked rules, the profile to run, and the digest of its rules and values."""

    rules: RuleSet
    profile: str
    digest: str


def rules_of(
    profile: str, values: Mapping[str, Value], typical: Sequence[TypicalPod], paths: Sequence[Path] = ()
) -> RunRules:
    """Check a profile of the rule files in `paths`, else of the shipped ones, with values for `Rule.param`.

    Raises InvalidInputError with the diagnostics.
    """
    draft = {_FILE: f"kdsl 1\npackage {_PACKAGE}\nimport {_package(profile)} as base\n".encode()}
    base = _checked((*paths, _FILE), draft)
    found = find_profile(base, profile, "profile")
    if not values:
        return RunRules(base, found.qualified, base.digest)
    text = _overlay(found, {name: _written(value, typical) for name, value in values.items()})
    rules = _checked((*paths, _FILE), {_FILE: text.encode()})
    return RunRules(rules, f"{_PACKAGE}.{_PROFILE}", rules.digest)


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


def _written(value: Value, typical: Iterable[TypicalPod]) -> str:
    """Return the text of a value in the rule language."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _typical_text(typical) if value == TYPICAL else value
    return repr(value)


def _typical_text(typical: Iterable[TypicalPod]) -> str:
    calls = (
        f"typicalPod({pod.weight!r}, {pod.cpu}, {pod.cards}, {pod.share}, {json.dumps(list(pod.models))})"
        for pod in typical
    )
    return f"[{', '.join(calls)}]"
