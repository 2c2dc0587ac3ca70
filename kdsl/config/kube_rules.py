"""Writes the content of a kube-scheduler configuration as rules and settings of kdsl.

A profile becomes one that extends the shipped default profile and states the differences: rules removed or
moved, weights, parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kdsl.base.span import Source
from kdsl.config.kube_extenders import extender_settings
from kdsl.config.kube_parameters import parameters
from kdsl.config.kube_plugins import MULTI_POINT, PLUGINS, ExtensionPoint
from kdsl.config.kube_scheduler import KubeProfile, KubeSchedulerConfiguration
from kdsl.lang.formatter import format_source

BASE: Final = "kubernetes.v1_36"
"""The package of the rules that profiles extend; files import it as `kubernetes`."""
STRATEGIES: Final = {
    "MostAllocated": "kubernetes.most_allocated",
    "RequestedToCapacityRatio": "kubernetes.requested_to_capacity_ratio",
}
"""The packages of the scores of NodeResourcesFit, except for the default one."""
_FIT: Final = "NodeResourcesFit"
_GATES: Final = '''
  admit when pod.schedulingGates.size() == 0
    else "waiting for scheduling gates: [${pod.schedulingGates.join(' ')}]"'''
_WORD: Final = re.compile(r"[^A-Za-z0-9_]+")
_RESERVED: Final = frozenset(
    {
        "in",
        "true",
        "false",
        "null",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
        "plugins",
    }
)
"""Reserved words that cannot be names, and the package of plugins."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A rule file in canonical form, its profiles, and the matching settings."""

    package: str
    text: str
    profiles: tuple[str, ...]
    settings: Mapping[str, Any]

    def settings_text(self, path: str) -> str:
        """Return the settings as the text of a KdslConfiguration whose rules are the file at `path`."""
        document = {
            "apiVersion": "kdsl.dev/v1alpha1",
            "kind": "KdslConfiguration",
            "rules": {"paths": [path]},
            "profiles": list(self.profiles),
            **self.settings,
        }
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def convert_kube_scheduler(configuration: KubeSchedulerConfiguration, origin: str) -> Converted:
    """Write a configuration as a rule file. `origin` is the name of its file; it names the package too."""
    package = word_of(origin.partition(".")[0]) or "imported"
    names = _profile_names(configuration.profiles)
    queues = _Queues(configuration)
    samples = len(_percentages(configuration.profiles)) > 1
    blocks = [
        _profile(name, profile, queues.name_for(profile), origin, samples)
        for name, profile in zip(names, configuration.profiles, strict=True)
    ]
    imports = [f"import {BASE} as kubernetes"]
    used = {profile.arguments.strategy() for profile in configuration.profiles if _scores(profile, _FIT)}
    imports += [f"import {STRATEGIES[name]}" for name in sorted(used & STRATEGIES.keys())]
    header = "\n".join(["kdsl 1", f"package {package}", *imports])
    text = "\n\n".join([header, *queues.written(), *blocks]) + "\n"
    formatted = format_source(Source(f"{package}.kdsl", text))
    # INVARIANT: the generated text parses; names and texts of the configuration are written as JSON strings.
    assert formatted.text is not None, (text, formatted.diagnostics)
    return Converted(
        package, formatted.text, tuple(f"{package}.{name}" for name in names), _settings(configuration)
    )


def _settings(configuration: KubeSchedulerConfiguration) -> Mapping[str, Any]:
    settings: dict[str, Any] = extender_settings(configuration.extenders)
    if configuration.parallelism is not None:
        settings["parallelism"] = configuration.parallelism
    percentages = _percentages(configuration.profiles)
    if len(percentages) == 1 and percentages != {0}:
        (settings["percentageOfNodesToScore"],) = percentages
    return settings


def _percentages(profiles: Sequence[KubeProfile]) -> set[int]:
    """Return the percentages of all profiles: one is a setting, several become `sample`s of profiles."""
    return {profile.percentage for profile in profiles}


def _profile_names(profiles: Sequence[KubeProfile]) -> list[str]:
    """Return a name for each profile: its scheduler name as a word, with a number if the word is taken."""
    names: list[str] = []
    for profile in profiles:
        word = name = word_of(profile.scheduler) or "profile"
        number = 2
        while name in names:
            name, number = f"{word}_{number}", number + 1
        names.append(name)
    return names


def word_of(text: str) -> str:
    """Return a text as an identifier; empty where it has no character of one."""
    word = _WORD.sub("_", text).strip("_")
    return f"_{word}" if word[:1].isdigit() or word in _RESERVED else word


# ---- queues ------------------------------------------------------------------------------------------------


class _Queues:
    """The queues that profiles need beside the shipped one: with other back-offs, or for gated pods."""

    def __init__(self, configuration: KubeSchedulerConfiguration) -> None:
        self._waits = (configuration.initial_backoff, configuration.max_backoff)
        self._names: dict[bool, str] = {}

    def name_for(self, profile: KubeProfile) -> str:
        """Return the name of a profile's queue; empty where it uses the inherited one."""
        gated = profile.enabled.has("SchedulingGates", ExtensionPoint.PRE_ENQUEUE)
        if gated and self._waits == (1, 10):
            return ""
        return self._names.setdefault(gated, "PrioritySort" if gated else "UngatedPrioritySort")

    def written(self) -> Iterator[str]:
        """Yield the texts of the queues that profiles use."""
        initial, most = self._waits
        for gated, name in sorted(self._names.items(), reverse=True):
            admit = _GATES if gated else ""
            yield (
                f"/// Higher priority first, then who waited longer.\nqueue {name} {{{admit}\n"
                f"  order by pod.priority desc, pod.queuedAt\n"
                f'  backoff duration("{initial}s") to duration("{most}s")\n}}'
            )


# ---- profiles ----------------------------------------------------------------------------------------------


def _profile(name: str, profile: KubeProfile, queue: str, origin: str, samples: bool) -> str:
    """Write one profile; with `samples` it says itself how many feasible nodes are enough."""
    lines = [f"scheduler {json.dumps(profile.scheduler, ensure_ascii=False)}"]
    if samples and profile.percentage:
        lines.append(f"sample kubernetes.enoughNodes(nodes, {profile.percentage})")
    if queue and not profile.enabled.has("SchedulingGates", ExtensionPoint.PRE_ENQUEUE):
        lines.append("// kdsl: ignore[K0708] the configuration does not run SchedulingGates")
    lines += [f"queue {queue}"] if queue else []
    if not profile.enabled.has("DefaultPreemption", ExtensionPoint.POST_FILTER):
        lines.append("disable preemption LowerPriority")
    lines += _predicate_changes(_predicates(profile))
    lines += _score_changes(profile)
    lines += (
        f"set {rule}.{param} = {value}"
        for (rule, param), value in parameters(
            profile.arguments,
            filters=profile.enabled.points[ExtensionPoint.FILTER],
            scores=profile.enabled.points[ExtensionPoint.SCORE],
            preempts=profile.enabled.has("DefaultPreemption", ExtensionPoint.POST_FILTER),
        ).items()
    )
    body = "".join(f"  {line}\n" for line in lines)
    doc = f"/// The profile {profile.scheduler} of {origin}."
    return f"{doc}\nprofile {name} extends kubernetes.default {{\n{body}}}"


def _predicates(profile: KubeProfile) -> list[str]:
    """Return the plugins that filter and have a rule, in order."""
    return [name for name in profile.enabled.points[ExtensionPoint.FILTER] if PLUGINS[name].predicate]


def _scores(profile: KubeProfile, plugin: str) -> bool:
    return bool(PLUGINS[plugin].score) and profile.enabled.has(plugin, ExtensionPoint.SCORE)


def _predicate_changes(wanted: Sequence[str]) -> Iterator[str]:
    """Yield the changes from the default list of predicates to the wanted one."""
    default = [plugin.name for plugin in MULTI_POINT if plugin.predicate]
    kept = _longest_in_order([default.index(name) for name in wanted])
    staying = [default[index] for index in kept]
    yield from (f"disable predicate {name}" for name in default if name not in staying)
    for at, name in enumerate(wanted):
        if name in staying:
            continue
        # The predicates before it in the list are in place already.
        follower = next((each for each in wanted[at + 1 :] if each in staying), "")
        where = f"after {wanted[at - 1]}" if at else f"before {follower}" if follower else ""
        yield f"add predicate {PLUGINS[name].predicate} {where}".rstrip()


def _longest_in_order(places: Sequence[int]) -> list[int]:
    """Return the longest ascending subsequence of some places, the first of several."""
    best: list[list[int]] = []
    for place in places:
        before = [run for run in best if run[-1] < place]
        best.append([*max(before, key=len, default=[]), place])
    return max(best, key=len, default=[])


def _score_changes(profile: KubeProfile) -> Iterator[str]:
    """Yield the changes from the default scores to the profile's. The order of scores has no meaning."""
    strategy = STRATEGIES.get(profile.arguments.strategy(), "")
    for plugin in MULTI_POINT:
        if not plugin.score:
            continue
        weight = profile.enabled.weights.get(plugin.name)
        if weight is None:
            yield f"disable score {plugin.name}"
        elif strategy and plugin.name == _FIT:
            yield f"disable score {plugin.name}"
            yield f"add score {strategy.rpartition('.')[2]}.{plugin.name} weight {weight}"
        elif weight != plugin.weight:
            yield f"reweight {plugin.name} {weight}"
