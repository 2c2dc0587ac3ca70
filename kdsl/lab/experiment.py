"""Experiments: which profiles run on which traces, with which parameters and seeds. Read from YAML, by a
schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.base.span import Span
from kdsl.config.codes import ConfigCode
from kdsl.config.documents import one_document
from kdsl.config.misfits import misfits, place_of
from kdsl.config.schema_files import read_schema
from kdsl.cycle.decision import TieBreak
from kdsl.lab.inputs.sources import OtherTrace, TraceForm
from kdsl.lab.orders import OrderFiles
from kdsl.lab.rules import Value
from kdsl.lab.time.generating import Generation
from kdsl.lab.time.spec import TimeSpec, read_generation, read_time
from kdsl.lab.traces import Preparation
from kdsl.lang.yaml_tree import (
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    to_plain,
)

LOADS: Final = tuple(range(0, 131, 10))

Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """The tables of a trace; with a `generation` other pods are drawn from it."""

    nodes: Path
    pods: Path
    generation: Generation | None = None


TraceSource = TraceFiles | OtherTrace


@dataclass(frozen=True, slots=True)
class Contender:
    """A profile of an experiment; `choices` are the values that it runs with, one after the other. `node` is
    its place in the file.
    """

    profile: str
    tie_break: TieBreak
    choices: tuple[Values, ...]
    node: YamlNode | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Planned:
    """One run of an experiment. `sizes` are the values of `time` that are lists there."""

    trace: str
    name: str
    values: Values
    seed: int
    sizes: Values = field(default_factory=dict)

    @property
    def parameters(self) -> Values:
        """All that the experiment varies beside trace, profile and seed."""
        return {**self.values, **self.sizes}

    def __str__(self) -> str:
        values = "".join(f", {name} = {value}" for name, value in self.parameters.items())
        return f"{self.trace}, {self.name}, seed {self.seed}{values}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """The content of an experiment. `rules` are paths, empty for the shipped rules.

    With `orders` the pods and nodes of a run come from order files instead of a `preparation`. With `time`
    runs go over time. `places` has where the experiment names a file, by its path.
    """

    rules: tuple[Path, ...]
    traces: Mapping[str, TraceSource]
    preparation: Preparation
    contenders: Mapping[str, Contender]
    seeds: tuple[int, ...]
    loads: tuple[int, ...] = LOADS
    time: TimeSpec | None = None
    orders: OrderFiles | None = None
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def runs(self) -> Iterator[Planned]:
        """Yield all runs, in the order of results."""
        for trace in self.traces:
            for name, contender in self.contenders.items():
                for values in contender.choices:
                    for sizes in [{}] if self.time is None else self.time.sizes():
                        for seed in self.seeds:
                            yield Planned(trace, name, values, seed, sizes)


def experiment_schema() -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of experiments."""
    return read_schema("kdsl.lab", "experiment.v1")


def load_experiment(path: Path) -> Experiment:
    """Read an experiment. Paths in it are relative to its folder. Raises InvalidInputError with all
    mistakes.
    """
    root = one_document(path, "an experiment", "Experiment kdsl.dev/v1")
    found = list(misfits(root, experiment_schema()))
    traces, over_time = (_fits(root, key, found) for key in ("traces", "time"))
    time, problems = read_time(root) if over_time else (None, ())
    generations, others = _generations(root) if traces and over_time else ({}, [])
    found += (*(trace_misfits(root) if traces else ()), *problems, *others)
    if found:
        raise InvalidInputError(found)
    return _experiment(root, path.parent, time, generations)


def _fits(root: YamlNode, key: str, found: Iterable[Diagnostic]) -> bool:
    """Return whether the key is absent, or its value has no mistake in its form."""
    node = root.get(key) if isinstance(root, YamlMapping) else None
    # An empty value has a place without characters.
    return node is None or not any(
        each.span and (each.span == node.span or each.span.begins_in(node.span)) for each in found
    )


def _generations(root: YamlNode) -> tuple[dict[str, Generation], list[Diagnostic]]:
    """Return how traces are generated, those that are, by name."""
    values: Any = to_plain(root)
    generations: dict[str, Generation] = {}
    found: list[Diagnostic] = []
    traces = values.get("traces", {}) if isinstance(values, dict) else {}
    for name, trace in traces.items():
        if "generate" not in trace:
            continue
        if "time" not in values:
            title = f"the trace `{name}` is generated, and only runs over time use its times"
            span = place_of(root, ("traces", name, "generate"))
            found.append(Diagnostic(ConfigCode.MISSING_KEY, title, span, help=("add `time: {}`",)))
            continue
        generation, problems = read_generation(root, name)
        found += problems
        if generation is not None:
            generations[name] = generation
    return generations, found


def _experiment(
    root: YamlNode, folder: Path, time: TimeSpec | None, generations: Mapping[str, Generation]
) -> Experiment:
    """Build an experiment from a tree that fits the schema."""
    values: Any = to_plain(root)
    profiles = root.get("profiles") if isinstance(root, YamlMapping) else None
    prepare = values.get("prepare", {})
    orders = prepare.get("orders")
    return Experiment(
        rules=tuple(folder / path for path in values.get("rules", ())),
        traces={
            name: _source(files, folder, generations.get(name)) for name, files in values["traces"].items()
        },
        preparation=Preparation(
            shuffle=prepare.get("shuffle", True),
            load=float(prepare["load"]) if "load" in prepare else None,
            inflation=float(prepare.get("inflation", 1)),
        ),
        contenders={
            key.text: _contender(values["profiles"][key.text], node)
            for key, node in (profiles.entries if isinstance(profiles, YamlMapping) else ())
        },
        # JSON Schema counts `2.0` as an integer.
        seeds=tuple(map(int, values["seeds"])),
        loads=tuple(map(int, values.get("loads", LOADS))),
        time=time,
        orders=None if orders is None else OrderFiles(folder / orders["pods"], folder / orders["nodes"]),
        places={
            str(folder / each.text): each.span
            for key in ("traces", "rules", "prepare")
            for each in _scalars(root.get(key) if isinstance(root, YamlMapping) else None)
        },
    )


def _scalars(node: YamlNode | None) -> Iterator[YamlScalar]:
    match node:
        case YamlScalar():
            yield node
        case YamlMapping(entries=entries):
            for _, value in entries:
                yield from _scalars(value)
        case YamlSequence(items=items):
            for item in items:
                yield from _scalars(item)


def trace_misfits(root: YamlNode) -> tuple[Diagnostic, ...]:
    """Return the traces of an experiment that are of no form, or of several."""
    traces = root.get("traces") if isinstance(root, YamlMapping) else None
    found: list[Diagnostic] = []
    for name, trace in traces.entries if isinstance(traces, YamlMapping) else ():
        keys = {key.text for key, _ in trace.entries} if isinstance(trace, YamlMapping) else set()
        if keys - {"generate"} != {"nodes", "pods"} and not (len(keys) == 1 and keys <= set(TraceForm)):
            forms = f"`nodes` and `pods`, or one of {', '.join(f'`{form}`' for form in TraceForm)}"
            title = (
                f"the trace `{name.text}` has {' and '.join(f'`{key}`' for key in sorted(keys)) or 'no keys'}"
            )
            found.append(Diagnostic(ConfigCode.CONFLICT, title, name.span, help=(f"a trace has {forms}",)))
    return tuple(found)


def _source(files: Mapping[str, str], folder: Path, generation: Generation | None) -> TraceSource:
    if "nodes" in files:
        return TraceFiles(folder / files["nodes"], folder / files["pods"], generation)
    ((form, path),) = files.items()
    return OtherTrace(TraceForm(form), folder / path)


def _contender(values: Mapping[str, Any], node: YamlNode) -> Contender:
    return Contender(
        values["profile"], TieBreak(values.get("tieBreak", "first")), tuple(_choices(values)), node
    )


def _choices(contender: Mapping[str, Any]) -> Iterator[Values]:
    """Yield the values of each choice: those of `set`, of each of `list` and of each combination of
    `grid`.
    """
    grid: Mapping[str, list[Value]] = contender.get("grid", {})
    for listed in contender.get("list", ({},)):
        for combination in product(*grid.values()):
            yield {**contender.get("set", {}), **listed, **dict(zip(grid, combination, strict=True))}
