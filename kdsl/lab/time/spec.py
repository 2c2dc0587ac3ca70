"""The key `time` of experiments, and generated traces: YAML to values, with all mistakes at their places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean
from kdsl.base.errors import InvalidInputError, gathered
from kdsl.base.frozen_map import freeze
from kdsl.base.paths import Path, path_text
from kdsl.base.span import Span
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.reader import read_values
from kdsl.config.codes import ConfigCode
from kdsl.config.misfits import node_at, place_of
from kdsl.lab.rules import Value
from kdsl.lab.time.distributions import Distribution, distribution_of
from kdsl.lab.time.expander import check_expander
from kdsl.lab.time.fleet import HOSTNAME
from kdsl.lab.time.generating import FitTo, Generation, Wave
from kdsl.lab.time.plan import AfterEviction, NodeGroup, Scaling, Stop, TimePlan
from kdsl.lang.yaml_tree import YamlMapping, YamlNode, YamlScalar, YamlSequence, to_plain

Values = Mapping[str, Value]

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LISTED: Final = ("count", "min", "max", "price", "startup")
"""Keys of a group that may have several values: each runs."""


def seconds(value: float | str) -> float:
    """Return the seconds of a number, or of a text that fits the schema, such as `10m`."""
    if not isinstance(value, str):
        return float(value)
    number = value.rstrip("dhms")
    return float(number) * UNITS[value.removeprefix(number)]


@dataclass(frozen=True, slots=True)
class TimeSpec:
    """The content of `time`.

    `templates` are the nodes of groups that are written out, by group; `likes` are the places of names of
    nodes in the trace.
    """

    values: Mapping[str, Any]
    templates: Mapping[str, NodeFacts] = field(default_factory=dict)
    likes: Mapping[str, Span] = field(default_factory=dict, compare=False)

    @property
    def keeps_nodes(self) -> bool:
        """Return whether the nodes of the trace are there."""
        return bool(self.values.get("traceNodes", True))

    def sizes(self) -> Iterator[Values]:
        """Yield each choice of the values that are lists, by their path in the experiment."""
        listed = dict(_lists(self.values))
        for combination in product(*listed.values()):
            yield dict(zip(listed, combination, strict=True))

    def fixed(self, sizes: Values) -> dict[str, Any]:
        """Return the values of `time` with one choice for each list."""
        groups = {
            name: {key: sizes.get(f"time.groups.{name}.{key}", value) for key, value in group.items()}
            for name, group in self.values.get("groups", {}).items()
        }
        found = {key: sizes.get(f"time.{key}", value) for key, value in self.values.items()}
        return {**found, "groups": groups} if groups else found

    def speed(self, sizes: Values) -> float:
        """Return how many times as fast pods arrive as in the trace."""
        return float(self.fixed(sizes).get("speed", 1))

    def plan(self, sizes: Values, nodes: Mapping[str, NodeFacts]) -> TimePlan:
        """Return the plan of a run; `nodes` are those of the trace.

        Raises InvalidInputError if groups are like nodes that are not there, or a `min` exceeds its `max`.
        """
        values = self.fixed(sizes)
        evicted, plain = values.get("evicted", {}), TimePlan()
        found: list[Diagnostic] = []
        groups: list[NodeGroup] = []
        for name, group in values.get("groups", {}).items():
            with gathered(found):
                groups.append(self._group(name, group, nodes))
        if found:
            raise InvalidInputError(found)
        return TimePlan(
            until=seconds(values["until"]) if "until" in values else None,
            stop=Stop(values.get("stop", plain.stop)),
            most_pending=int(values["mostPending"]) if "mostPending" in values else None,
            sample=seconds(values.get("sample", plain.sample)),
            return_after=seconds(evicted.get("returnAfter", plain.return_after)),
            after_eviction=AfterEviction(evicted.get("duration", plain.after_eviction)),
            flush=bool(values.get("flush", plain.flush)),
            groups=tuple(groups),
            scaling=_scaling(values["autoscaler"]) if "autoscaler" in values else None,
        )

    def _group(self, name: str, group: Mapping[str, Any], nodes: Mapping[str, NodeFacts]) -> NodeGroup:
        template = self.templates.get(name) or nodes.get(group.get("like", ""))
        if template is None:
            title = f"the trace has no node `{group['like']}`"
            help_ = did_you_mean(group["like"], nodes)
            raise InvalidInputError([_wrong(title, self.likes.get(name), help_)])
        least = int(group.get("count", group.get("min", 0)))
        most = int(group.get("count", group.get("max", least)))
        if least > most:
            raise InvalidInputError([_wrong(f"group `{name}` has a `min` of {least} and a `max` of {most}")])
        return NodeGroup(
            name,
            replace(template, name=name),
            least,
            most,
            float(group.get("price", 0)),
            seconds(group.get("startup", 0)),
            int(group.get("priority", 0)),
        )


def read_time(root: YamlNode) -> tuple[TimeSpec | None, tuple[Diagnostic, ...]]:
    """Read the key `time` of an experiment that fits the schema; None without it, or with errors."""
    node = root.get("time") if isinstance(root, YamlMapping) else None
    if not isinstance(node, YamlMapping):
        return None, ()
    values: Any = to_plain(node)
    found = list(_not_numbers(root, ("time",)))
    templates: dict[str, NodeFacts] = {}
    likes: dict[str, Span] = {}
    has_scaler = "autoscaler" in values
    for name, group in values.get("groups", {}).items():
        path = ("time", "groups", name)
        if "like" in group:
            likes[name] = place_of(root, (*path, "like"))
        elif "node" in group:
            facts, problems = _template(name, group["node"], node_at(root, (*path, "node")))
            found += problems
            if facts is not None:
                templates[name] = facts
        else:
            title = f"group `{name}` has no node"
            help_ = ("write `like:` and the name of a node in the trace, or `node:` and a node",)
            found.append(Diagnostic(ConfigCode.MISSING_KEY, title, place_of(root, path), help=help_))
        if "count" not in group and not ("max" in group and has_scaler):
            title = f"group `{name}` has neither a `count` nor a `max` that an `autoscaler` reaches"
            found.append(Diagnostic(ConfigCode.MISSING_KEY, title, place_of(root, path)))
    if has_scaler:
        if "groups" not in values:
            title = "an autoscaler needs `groups` of nodes"
            found.append(Diagnostic(ConfigCode.MISSING_KEY, title, place_of(root, ("time", "autoscaler"))))
        found += _expander_problems(node)
    return (None if found else TimeSpec(values, templates, likes)), tuple(found)


def _expander_problems(time: YamlMapping) -> tuple[Diagnostic, ...]:
    scaler = time.get("autoscaler")
    scalar = scaler.get("expander") if isinstance(scaler, YamlMapping) else None
    if not isinstance(scalar, YamlScalar):
        return ()
    return tuple(check_expander(scalar.text, scalar.locator())[1])


def _template(name: str, node: Any, written: YamlNode) -> tuple[NodeFacts | None, list[Diagnostic]]:
    """Return the node of a group, which is written as a Kubernetes node without kind and name."""
    meta = {**(node.get("metadata") or {}), "name": name}
    read = read_values([{"apiVersion": "v1", "kind": "Node", **node, "metadata": meta}], "node")
    places = dict(_places(written, ()))
    problems = [
        replace(
            each,
            span=places.get(each.where.partition(": ")[2], written.span),
            where="",
            # Somebody has written this node for this experiment: an unknown field is a mistake.
            severity=Severity.ERROR if each.code == InputCode.UNKNOWN_FIELD else each.severity,
        )
        for each in read.diagnostics
    ]
    if not read.nodes:
        return None, problems or [_wrong("this is not a node", written.span)]
    facts = NodeFacts.of(read.nodes[0])
    labels = freeze({HOSTNAME: name, **facts.labels})
    return replace(facts, labels=labels), [each for each in problems if each.is_error]


def _places(node: YamlNode, path: Path) -> Iterator[tuple[str, Span]]:
    """Yield the places of all values of a tree by their paths, as diagnostics write them."""
    yield path_text(path), node.span
    match node:
        case YamlMapping(entries=entries):
            for key, value in entries:
                yield from _places(value, (*path, key.text))
        case YamlSequence(items=items):
            for index, item in enumerate(items):
                yield from _places(item, (*path, index))
        case YamlScalar():
            return


def _scaling(values: Mapping[str, Any]) -> Scaling:
    plain = Scaling("")
    return Scaling(
        values["expander"],
        seconds(values.get("every", plain.every)),
        seconds(values.get("idleAfter", plain.idle_after)),
        float(values.get("underused", plain.underused)),
    )


def _lists(values: Mapping[str, Any]) -> Iterator[tuple[str, list[Value]]]:
    if isinstance(values.get("speed"), list):
        yield "time.speed", values["speed"]
    for name, group in values.get("groups", {}).items():
        for key in _LISTED:
            if isinstance(group.get(key), list):
                yield f"time.groups.{name}.{key}", group[key]


# ---- generated traces --------------------------------------------------------------------------------------


def read_generation(root: YamlNode, trace: str) -> tuple[Generation | None, tuple[Diagnostic, ...]]:
    """Read `generate` of a trace that fits the schema; None with errors."""
    path = ("traces", trace, "generate")
    found = list(_not_numbers(root, path))
    values: Any = to_plain(root)
    values = values["traces"][trace]["generate"]
    chosen: dict[str, Distribution | FitTo] = {}
    for key in ("arrivals", "durations"):
        if not found:
            chosen[key] = _distribution(values[key])
    wave = values.get("wave")
    if found:
        return None, tuple(found)
    waves = None if wave is None else Wave(float(wave["amplitude"]), **_wave_times(wave))
    return Generation(int(values["pods"]), chosen["arrivals"], chosen["durations"], waves), ()


def _distribution(value: Any) -> Distribution | FitTo:
    """Return the meaning of `arrivals` or `durations`: `fit`, `{fit: weibull}`, or a distribution."""
    if value == "fit":
        return FitTo()
    ((name, about),) = value.items()
    return FitTo(about) if name == "fit" else distribution_of(name, about)


def _wave_times(wave: Mapping[str, Any]) -> dict[str, float]:
    return {key: seconds(wave[key]) for key in ("period", "peak") if key in wave}


def _not_numbers(root: YamlNode, path: tuple[str | int, ...]) -> Iterator[Diagnostic]:
    """Report numbers that are none or infinite: a schema does not see them."""
    value: Any = to_plain(root)
    for step in path:
        value = value[step]
    open_: list[tuple[tuple[str | int, ...], Any]] = [(path, value)]
    while open_:
        at, value = open_.pop()
        if isinstance(value, dict):
            open_ += [((*at, key), each) for key, each in value.items()]
        elif isinstance(value, list):
            open_ += [((*at, place), each) for place, each in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            yield _wrong(f"`{value}` is not a number that can be used here", place_of(root, at))


def _wrong(title: str, span: Span | None = None, help_: tuple[str, ...] = ()) -> Diagnostic:
    where = "" if span else "time"
    return Diagnostic(ConfigCode.WRONG_VALUE, title, span, where=where, help=help_)
