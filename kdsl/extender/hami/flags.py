"""HAMi's flags and its device configuration, as options and rules.

So kdsl's image can replace HAMi's in its Deployment, and nothing else changes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kdsl.app import Settings, build_scheduler, check_text
from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.base.file_policy import read_named
from kdsl.base.span import Source
from kdsl.base.times import SECOND, parse_duration
from kdsl.check.model.sharing import CARD_POLICIES
from kdsl.config.codes import ConfigCode
from kdsl.config.documents import not_one
from kdsl.config.hami import PROFILE, DeviceProfile, convert_device_configuration
from kdsl.hooks.context import PluginContext
from kdsl.lang.discovery import MAX_BYTES, SUFFIX, read_source, unreadable
from kdsl.lang.yaml_tree import YamlMapping, read_yaml
from kdsl.reload import Reloaded, Sources
from kdsl.rulebook.answer import CheckedRules

POLICIES: Final = {"node_policy": "nodePolicy", "card_policy": "cardPolicy"}
_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class DeviceSources(Sources):
    """Rules made of HAMi's device configuration; a changed file is read again."""

    devices: Path = Path("device-config.yaml")
    profile: DeviceProfile = field(default_factory=DeviceProfile)

    def load(self, context: PluginContext) -> Reloaded:
        """Read and build everything; raise InvalidInputError with all errors."""
        package, checked, found = self._converted()
        if checked.rules is None or has_errors(found):
            raise InvalidInputError(found)
        settings = Settings(profile=f"{package}.{PROFILE}", eager=True)
        return Reloaded(build_scheduler(checked.rules, context, settings), found)

    def mistakes(self) -> tuple[Diagnostic, ...]:
        """Return what `load` would report before it builds anything."""
        try:
            return self._converted()[2]
        except InvalidInputError as error:
            return error.diagnostics

    def _converted(self) -> tuple[str, CheckedRules, tuple[Diagnostic, ...]]:
        """Return the package of the rules, the checked rules, and all diagnostics."""
        text, package, found = self._text()
        checked = check_text(self.devices.with_suffix(SUFFIX), text)
        return package, checked, (*found, *checked.diagnostics)

    def named(self) -> tuple[Path, ...]:
        """Return the device configuration."""
        return (self.devices,)

    def _text(self) -> tuple[str, str, tuple[Diagnostic, ...]]:
        try:
            source = read_source(self.devices, read_named(self.devices, MAX_BYTES))
        except (OSError, ValueError) as error:
            help_ = "name HAMi's device configuration with `--device-config-file`"
            raise InvalidInputError([unreadable(self.devices, error, help_)]) from None
        if not isinstance(source, Source):
            raise InvalidInputError([source])
        read = read_yaml(source)
        if has_errors(read.diagnostics):
            raise InvalidInputError(read.diagnostics)
        if len(read.documents) != 1:
            raise InvalidInputError([not_one(source, read.documents, "a device configuration")])
        (root,) = read.documents
        if not isinstance(root, YamlMapping):
            title = "the device configuration must be keys and values"
            raise InvalidInputError([Diagnostic(ConfigCode.WRONG_TYPE, title, root.span)])
        converted, found = convert_device_configuration(source, root, self.profile)
        if converted is None:
            raise InvalidInputError(found)
        return converted.text, converted.package, found


def node_labels(text: str) -> Mapping[str, str]:
    """Read `key=value,…`; raise ValueError."""
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    if not all(mark and key.strip() for key, mark, _ in pairs):
        raise ValueError(f"`{text}` is not like `key=value,key=value`")
    return {key.strip(): value.strip() for key, _, value in pairs}


def card_policies(text: str) -> str:
    """Check a list of policies for cards, `numa,binpack`; raise ValueError."""
    for name in filter(None, text.split(",")):
        if name not in CARD_POLICIES:
            near = did_you_mean(name, CARD_POLICIES) or (f"there are {', '.join(CARD_POLICIES)}",)
            raise ValueError("; ".join((f"there is no policy `{name}`", *near)))
    return text


def duration(text: str) -> float:
    """Return the seconds of a duration in Go's notation, `5m` or `1m30s`; raise ValueError."""
    try:
        if (found := parse_duration(text.strip())) >= 0:
            return found / SECOND
    except ValueError:
        pass
    raise ValueError(f"`{text}` is no duration such as 5m or 28s")


def level(text: str) -> int:
    """Read the log level of Go's `-v`: `4` or `=4`; raise ValueError."""
    digits = text.removeprefix("=")
    if not digits.isdecimal():
        raise ValueError(f"`{text}` is no log level such as 4")
    return int(digits)


def address(text: str) -> tuple[str, int]:
    """Read `host:port`, where the host may be empty; raise ValueError."""
    host, mark, port = text.rpartition(":")
    if not mark or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"`{text}` is not like 0.0.0.0:443")
    return host.strip("[]") or "0.0.0.0", int(port)


def own_namespace() -> str:
    """Return the namespace of this process; empty outside of a cluster."""
    named = os.environ.get("POD_NAMESPACE", "")
    if named:
        return named
    try:
        return _NAMESPACE.read_text().strip()
    except OSError:
        return ""
