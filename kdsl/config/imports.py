"""Configurations of other schedulers that become rules and settings of kdsl, by the kind of document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.span import Source
from kdsl.config.codes import ConfigCode
from kdsl.config.documents import not_one
from kdsl.config.hami import convert_device_configuration, is_device_configuration
from kdsl.config.kube_rules import Converted, convert_kube_scheduler
from kdsl.config.kube_scheduler import KIND, read_kube_scheduler
from kdsl.config.policy import POLICY, read_policy
from kdsl.config.policy_rules import convert_policy
from kdsl.lang.formatter import format_source
from kdsl.lang.yaml_tree import YamlMapping, YamlNode, YamlScalar, read_yaml


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The converted configuration, or None with the errors that explain why; warnings come with either."""

    converted: Converted | None
    diagnostics: tuple[Diagnostic, ...]


def _kube_scheduler(source: Source, skips_unknown: bool) -> ImportResult:
    read = read_kube_scheduler(source, skips_unknown=skips_unknown)
    if read.configuration is None:
        return ImportResult(None, read.diagnostics)
    return ImportResult(
        convert_kube_scheduler(read.configuration, PurePath(source.path).name), read.diagnostics
    )


def _policy(source: Source, skips_unknown: bool) -> ImportResult:
    read = read_policy(source, skips_unknown=skips_unknown)
    if read.policy is None:
        return ImportResult(None, read.diagnostics)
    return ImportResult(convert_policy(read.policy, PurePath(source.path).name), read.diagnostics)


IMPORTERS: Final[Mapping[str, Callable[[Source, bool], ImportResult]]] = {
    KIND: _kube_scheduler,
    POLICY: _policy,
}
"""The reader of a document, by its `kind`."""
_OF_CHART: Final = frozenset({"devicePlugin", "scheduler"})
"""Keys that all values of HAMi's chart have."""
_GET: Final = "kubectl get configmap"
_DEVICES: Final = "'jsonpath={.data.device-config\\.yaml}'"


def import_configuration(source: Source, *, skips_unknown: bool = False) -> ImportResult:
    """Read a configuration of another scheduler and write it as rules. Never raises.

    With `skips_unknown`, plugins without a counterpart in kdsl are left out: each is a warning, and a comment
    in the rules.
    """
    read = read_yaml(source)
    if not read.is_readable:
        return ImportResult(None, read.diagnostics)
    if len(read.documents) != 1:
        return ImportResult(None, (not_one(source, read.documents, "a configuration"),))
    (root,) = read.documents
    if isinstance(root, YamlMapping) and is_device_configuration(root):
        converted, found = convert_device_configuration(source, root)
        both = sorted((*read.diagnostics, *found), key=lambda each: each.span.start if each.span else 0)
        return ImportResult(None if has_errors(both) else converted, tuple(both))
    kind = _word(root, "kind")
    importer = IMPORTERS.get(kind)
    if importer is not None:
        result = importer(source, skips_unknown)
        return _with_comments(result) if skips_unknown else result
    title = f"`{source.path}` is no scheduler configuration: its kind is `{kind}`"
    if not kind:
        title = f"`{source.path}` is no scheduler configuration: it has no `kind`"
    kinds = f"{', '.join(IMPORTERS)} and HAMi's device configuration, which has no kind"
    where_it_is = (*_texts_in(root), *_of_values(root))
    help_ = (*did_you_mean(kind, IMPORTERS), *where_it_is, f"kinds that can be converted: {kinds}")
    return ImportResult(
        None, (Diagnostic(ConfigCode.NO_CONFIGURATION, title, where=source.path, help=help_),)
    )


def _with_comments(result: ImportResult) -> ImportResult:
    """Add a comment below the header of the rules for every plugin that was left out."""
    lines = [
        f"// Left out: {each.title} ({each.span})."
        for each in result.diagnostics
        if each.code == ConfigCode.UNKNOWN_PLUGIN
    ]
    if result.converted is None or not lines:
        return result
    head, package, rest = result.converted.text.split("\n", 2)
    commented = "\n".join([head, *lines, package, rest])
    formatted = format_source(Source(f"{result.converted.package}.kdsl", commented))
    # INVARIANT: titles and places are on one line, so they stay inside their comments.
    assert formatted.text is not None, (commented, formatted.diagnostics)
    return ImportResult(replace(result.converted, text=formatted.text), result.diagnostics)


def _texts_in(root: YamlNode) -> Iterator[str]:
    """Yield how to get the texts out of a ConfigMap."""
    data = root.get("data") if isinstance(root, YamlMapping) else None
    if _word(root, "kind") != "ConfigMap" or not isinstance(data, YamlMapping):
        return
    metadata = root.get("metadata") if isinstance(root, YamlMapping) else None
    name, namespace = _word(metadata, "name"), _word(metadata, "namespace")
    of = f"{name or 'NAME'} -n {namespace or 'NAMESPACE'}"
    for key, _ in data.entries:
        place = key.text.replace(".", "\\.")
        command = f"{_GET} {of} -o 'jsonpath={{.data.{place}}}' > {key.text}"
        yield f"`{command}` writes its text to a file"


def _of_values(root: YamlNode) -> Iterator[str]:
    """Yield how to get the device configuration of a cluster, for values of HAMi's chart."""
    keys = {key.text for key, _ in root.entries} if isinstance(root, YamlMapping) else set()
    if keys >= _OF_CHART:
        yield "these are values of HAMi's chart: it makes the device configuration of them, a ConfigMap"
        yield f"`{_GET} hami-scheduler-device -n kube-system -o {_DEVICES} > device-config.yaml` gets it"


def _word(node: YamlNode | None, key: str) -> str:
    """Return the text of a key of a mapping; empty where it has none."""
    value = node.get(key) if isinstance(node, YamlMapping) else None
    return value.text if isinstance(value, YamlScalar) else ""
