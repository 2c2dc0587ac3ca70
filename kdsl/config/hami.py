"""Reads HAMi's device configuration and writes it as devices that extend the shipped ones, with a profile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import PurePath
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Label, Severity, did_you_mean, has_errors
from kdsl.base.span import Source
from kdsl.config.codes import ConfigCode
from kdsl.config.hami_tables import ASCEND, ILUVATAR, OF_NODES, OLD_KEYS, SECTIONS, ChipFamily
from kdsl.config.kube_rules import Converted
from kdsl.lang.formatter import format_source
from kdsl.lang.yaml_tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, to_plain

KEYS: Final = frozenset({*SECTIONS, "iluvatars", "vnpus"})
"""The keys that identify the document, which has no `kind`."""
PROFILE: Final = "hami"
_SCHEDULER: Final = "hami-scheduler"
_SHIPPED: Final = frozenset(
    (
        *(target.name for keys in SECTIONS.values() for target in keys.values()),
        *(device.rpartition(".")[2] for family in (ASCEND, ILUVATAR) for device in family.known.values()),
    )
)
"""The names of shipped devices, which no other chip gets."""
_RESOURCE: Final = re.compile("[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_WORDS: Final = {str: "a text", int: "a whole number", bool: "true or false"}


def is_device_configuration(root: YamlNode | None) -> bool:
    """Return whether a document is a device configuration: it has no kind, but a section of one."""
    if not isinstance(root, YamlMapping) or root.get("kind") is not None:
        return False
    return any(key.text in KEYS or ("", key.text) in OLD_KEYS for key, _ in root.entries)


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """The settings of the profile beside its devices: the flags of HAMi's scheduler.

    A profile that `has_devices_only` leaves all other rules to the kube-scheduler that asks it. `without` are
    sections that are not to be read.
    """

    scheduler: str = _SCHEDULER
    settings: Mapping[str, str] = field(default_factory=dict)
    has_devices_only: bool = False
    without: frozenset[str] = frozenset()


def convert_device_configuration(
    source: Source, root: YamlMapping, profile: DeviceProfile | None = None
) -> tuple[Converted | None, tuple[Diagnostic, ...]]:
    """Write a device configuration as rules; None with the errors that explain why not."""
    run = _Run(profile or DeviceProfile())
    run.document(root)
    if not run.devices and not has_errors(run.found) and not run.profile.has_devices_only:
        # A profile without devices of its own would have those of all vendors.
        title = "the device configuration names no resource"
        help_ = "name those of a vendor, such as `resourceCountName` below `nvidia`"
        run.found.append(Diagnostic(ConfigCode.MISSING_KEY, title, root.span, help=(help_,)))
    if has_errors(run.found):
        return None, tuple(run.found)
    package = re.sub(r"[^A-Za-z0-9]+", "_", PurePath(source.path).stem).strip("_").lower() or PROFILE
    package = package if package[0].isalpha() else f"{PROFILE}_{package}"
    formatted = format_source(Source(source.path, run.text(package)))
    if formatted.text is None:
        return None, formatted.diagnostics
    return Converted(package, formatted.text, (f"{package}.{PROFILE}",), {}), tuple(run.found)


@dataclass(slots=True)
class _Run:
    """The state of the conversion: values of parameters by device, in the order of the document."""

    profile: DeviceProfile
    found: list[Diagnostic] = field(default_factory=list)
    devices: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    chips: dict[str, YamlNode] = field(default_factory=dict)

    def document(self, root: YamlMapping) -> None:
        for key, node in root.entries:
            if self._is_old("", key) or key.text in self.profile.without:
                continue
            if key.text == "iluvatars":
                self._family(node, ILUVATAR, {})
            elif key.text == "vnpus":
                self._vnpus(node)
            elif key.text in SECTIONS:
                self._section(key.text, node)
            else:
                self._unknown(key, KEYS)

    def text(self, package: str) -> str:
        """Return the rule file."""
        names = [name for _, name in self.devices]
        profile = self.profile
        imports = {f"devices.{base.partition('.')[0]}" for base, _ in self.devices}
        imports.add("kubernetes.v1_36" if profile.has_devices_only else "devices.profiles")
        lines = ["kdsl 1", f"package {package}", "", *(f"import {each}" for each in sorted(imports))]
        for (base, name), sets in self.devices.items():
            lines += ["", f"device {name} extends {base} {{"]
            lines += [f"  set {param} = {value}" for param, value in sets.items()] + ["}"]
        base = "" if profile.has_devices_only else f" extends profiles.{PROFILE}"
        lines += ["", f"profile {PROFILE}{base} {{", f"  scheduler {json.dumps(profile.scheduler)}"]
        lines += ["  queue v1_36.PrioritySort"] if profile.has_devices_only else []
        lines += [f"  devices {', '.join(names)}"] if names else []
        lines += [f"  set Devices.{key} = {json.dumps(value)}" for key, value in profile.settings.items()]
        return "\n".join([*lines, "}", ""])

    def _section(self, section: str, node: YamlNode) -> None:
        if not isinstance(node, YamlMapping):
            self._wrong(node, section, "keys and values")
            return
        keys, of_nodes = SECTIONS[section], OF_NODES.get(section, frozenset())
        resources: dict[str, YamlScalar] = {}
        for key, value in node.entries:
            target = keys.get(key.text)
            if target is not None:
                written = self._value(value, key.text, target.type)
                sets = self.devices.setdefault((target.device, target.name), {})
                if not (target.is_fallback and target.param in sets):
                    sets[target.param] = written
                if not target.is_fallback:
                    self._resource(key, value, resources)
            elif key.text not in of_nodes and not self._is_old(section, key):
                self._unknown(key, {*keys, *of_nodes})

    def _vnpus(self, node: YamlNode) -> None:
        if isinstance(node, YamlSequence):
            # Before 2.9 the section was the list alone.
            self._family(node, ASCEND, {})
            return
        if not isinstance(node, YamlMapping):
            self._wrong(node, "vnpus", "`hamiVnpuCore` and `configs`")
            return
        shared: dict[str, str] = {}
        for key, value in node.entries:
            if key.text == "hamiVnpuCore":
                shared["allowsSoft"] = self._value(value, key.text, bool)
            elif key.text != "configs":
                self._unknown(key, ("hamiVnpuCore", "configs"))
        configs = node.get("configs")
        if configs is not None:
            self._family(configs, ASCEND, shared)

    def _family(self, node: YamlNode, family: ChipFamily, shared: dict[str, str]) -> None:
        if not isinstance(node, YamlSequence):
            self._wrong(node, "the chips", "a list")
            return
        for item in node.items:
            word = item.get("commonWord") if isinstance(item, YamlMapping) else None
            if not isinstance(item, YamlMapping) or not isinstance(word, YamlScalar) or not word.text:
                title = "a chip needs a `commonWord`"
                self.found.append(Diagnostic(ConfigCode.MISSING_KEY, title, item.span, "has none"))
                continue
            if self._is_new(word):
                self._chip(item, word.text, family, shared)

    def _chip(self, item: YamlMapping, word: str, family: ChipFamily, shared: dict[str, str]) -> None:
        base = family.known.get(word, family.base)
        name = base.rpartition(".")[2] if word in family.known else self._name(word)
        sets = self.devices.setdefault((base, name), {})
        resources: dict[str, YamlScalar] = {}
        if word not in family.known:
            sets[family.word] = json.dumps(word)
        sets.update(shared)
        for key, value in item.entries:
            if key.text in family.keys:
                param, wanted = family.keys[key.text]
                sets[param] = self._value(value, key.text, wanted)
                self._resource(key, value, resources)
            elif key.text == "templates" and family is ASCEND:
                sets["templates"] = self._templates(value)
            elif (
                key.text != "commonWord" and key.text not in family.without and not self._is_old("vnpus", key)
            ):
                known = {*family.keys, *family.without, "commonWord"}
                self._unknown(key, known | ({"templates"} if family is ASCEND else set()))

    def _templates(self, node: YamlNode) -> str:
        """Return the templates as a map from memory to name, smallest first. Of equal ones the first counts,
        as in HAMi.
        """
        found: dict[int, str] = {}
        if not isinstance(node, YamlSequence):
            self._wrong(node, "`templates`", "a list")
            return ""
        for each in node.items:
            plain = to_plain(each)
            memory, name = (
                (plain.get("memory"), plain.get("name")) if isinstance(plain, dict) else (None, None)
            )
            if not isinstance(memory, int) or not isinstance(name, str):
                self._wrong(each, "a template", "a `name` and a whole number as `memory`")
            elif memory in found:
                title = f"templates `{found[memory]}` and `{name}` have the same memory"
                warning, why = Severity.WARNING, f"`{found[memory]}` counts"
                self.found.append(
                    Diagnostic(ConfigCode.LISTED_TWICE, title, each.span, why, severity=warning)
                )
            else:
                found[memory] = name
        return "{" + ", ".join(f"{memory}: {json.dumps(found[memory])}" for memory in sorted(found)) + "}"

    def _value(self, node: YamlNode, key: str, wanted: type) -> str:
        plain = to_plain(node)
        if type(plain) is not wanted:
            self._wrong(node, f"`{key}`", _WORDS[wanted])
        return json.dumps(plain, ensure_ascii=False)

    def _resource(self, key: YamlScalar, value: YamlNode, known: dict[str, YamlScalar]) -> None:
        """Report a name that no pod can request, or that another key of the device has, too. Empty ones are
        not used.
        """
        if not key.text.startswith("resource") or not isinstance(value, YamlScalar) or not value.text:
            return
        if not _RESOURCE.fullmatch(value.text):
            title, help_ = f"`{key.text}` is no name of an extended resource", "write it as `vendor.com/name`"
            self.found.append(Diagnostic(ConfigCode.WRONG_VALUE, title, value.span, help=(help_,)))
        other = known.setdefault(value.text, key)
        if other is not key:
            title = f"`{key.text}` and `{other.text}` are the same resource"
            first = (Label(other.span, "the other one"),)
            self.found.append(Diagnostic(ConfigCode.LISTED_TWICE, title, value.span, secondary=first))

    def _is_new(self, node: YamlScalar) -> bool:
        """Return whether no other chip has this `commonWord`, and report it where one has."""
        other = self.chips.setdefault(node.text, node)
        if other is not node:
            title = f"there are two of `commonWord: {node.text}`"
            first = (Label(other.span, "the first one"),)
            self.found.append(Diagnostic(ConfigCode.LISTED_TWICE, title, node.span, secondary=first))
        return other is node

    def _name(self, word: str) -> str:
        """Return a new device name for a chip's word."""
        plain = "".join(part[0].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", word) if part)
        plain = plain if plain[:1].isalpha() else f"Chip{plain}"
        names = chain((plain,), (f"{plain}_{number}" for number in count(2)))
        taken = _SHIPPED | {name for _, name in self.devices}
        return next(name for name in names if name not in taken)

    def _is_old(self, section: str, key: YamlScalar) -> bool:
        """Return whether a key is one of an older HAMi, and report it: as a warning where its effect is not
        lost.
        """
        old = OLD_KEYS.get((section, key.text))
        if old is None:
            return False
        title = f"`{key.text}` is a key of older versions of HAMi"
        severity = Severity.ERROR if old.is_lost else Severity.WARNING
        self.found.append(
            Diagnostic(ConfigCode.OLD_KEY, title, key.span, old.why, severity=severity, help=(old.instead,))
        )
        return True

    def _wrong(self, node: YamlNode, what: str, wanted: str) -> None:
        title = f"{what} must be {wanted}"
        self.found.append(Diagnostic(ConfigCode.WRONG_TYPE, title, node.span, "this is not"))

    def _unknown(self, key: YamlScalar, known: Iterable[str]) -> None:
        names = sorted(known)
        help_ = did_you_mean(key.text, names) or (f"known are: {', '.join(names)}",)
        title = f"HAMi's device configuration has no key `{key.text}` here"
        self.found.append(Diagnostic(ConfigCode.UNKNOWN_KEY, title, key.span, "not known", help=help_))
