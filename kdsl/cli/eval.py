"""`kdsl eval`: evaluate an expression, with objects from files or without objects."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import KdslError
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import GivenPath, config_option, read_config
from kdsl.cli.output import emit, print_diagnostics, print_document

if TYPE_CHECKING:
    from kdsl.check.names.externals import Externals
    from kdsl.check.views.view import Views
    from kdsl.cluster.objects.node import NodeFacts
    from kdsl.cluster.read.pod_classes import PodClasses
    from kdsl.cluster.read.reader import ReadResult
    from kdsl.cluster.snapshot.snapshot import Snapshot
    from kdsl.eval.values import Value

_SCOPE = "predicate"
_NEEDS = {"pod": "pod", "node": "node", "cluster": "cluster", "topology": "cluster"}
"""The option that defines each name; `topology(key)` is short for `cluster.topology(key)`."""


@click.command("eval", epilog=examples_of("eval"))
@click.argument("expression", metavar="EXPR")
@click.option(
    "--pod",
    type=GivenPath(str),
    metavar="FILE",
    help="The value of `pod`: a file with one pod, `-` for stdin.",
)
@click.option(
    "--node", type=GivenPath(str), metavar="FILE", help="The value of `node`: a file with one node."
)
@click.option(
    "--cluster",
    type=GivenPath(str),
    metavar="FILE",
    help="The value of `cluster`: nodes and pods; the node of --node gets its pods from here.",
)
@config_option
@click.option("--dynamic", is_flag=True, help="CEL's dynamic typing, without the strict rules of rule files.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="A CEL expression, or typed JSON as in CEL's conformance suite.",
)
def command(
    expression: str,
    pod: str | None,
    node: str | None,
    cluster: str | None,
    config: Path | None,
    dynamic: bool,
    output: str,
) -> None:
    """Evaluate EXPR, typed as in a predicate, and print its value.

    Only the given objects have names. With --config EXPR may use functions of its plugins. Exits with 1 if
    the evaluation fails, with 2 if EXPR does not parse or check.
    """
    from kdsl.base.span import Source
    from kdsl.check.expressions.environment import Environment
    from kdsl.check.expressions.infer import check_expression
    from kdsl.check.names.externals import signatures_of
    from kdsl.check.views.view import load_views
    from kdsl.eval.values import EvalError
    from kdsl.lang.parser import parse_expression
    from kdsl.plan.compile.expression import compile_expression
    from kdsl.report.values import ValuePrinter

    externals = _externals(config)
    views = load_views().with_fields(externals.fields)
    values = _Inputs().values(pod, node, cluster)
    types = {name: views.scopes[_SCOPE][name] for name in values}
    expr, problems = parse_expression(Source("<expression>", expression))
    if expr is None or problems:
        _refuse(problems)
    environment = Environment(types, strict=not dynamic, fns=signatures_of(externals))
    typed, found = check_expression(expr, environment, views)
    if typed is None:
        _refuse([_with_help(diagnostic, values, views) for diagnostic in found])
    try:
        value = compile_expression(typed, externals.compiled)(tuple(values.values()))
    except EvalError as error:
        if output == "json":
            print_document({"evalError": {"errors": [{"message": error.message}]}}, output)
        emit(f"error: {error.message}", to_stderr=True)
        sys.exit(1)
    printer = ValuePrinter(views)
    if output == "json":
        print_document(printer.json(value, typed.type), output)
    else:
        emit(printer.text(value, typed.type))


def _externals(config: Path | None) -> Externals:
    """Return the functions of a configuration's plugins; exit with 2 if a plugin is unusable."""
    from kdsl.check.names.externals import NO_EXTERNALS
    from kdsl.configured import activate, configured, locate

    if config is None:
        return NO_EXTERNALS
    configuration = read_config(config)
    active = activate(configured(configuration))
    if active.diagnostics:
        _refuse(locate(active.diagnostics, configuration))
    return active.externals


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Reads the files of the options; standard input once, even if several options name it."""

    found: list[Diagnostic] = field(default_factory=list)

    def values(self, pod: str | None, node: str | None, cluster: str | None) -> Mapping[str, Value]:
        """Return the objects by their names in expressions."""
        from kdsl.cluster.objects.node import NodeFacts, NodeInfo
        from kdsl.cluster.objects.pod import PodInfo
        from kdsl.cluster.read.pod_classes import PodClasses
        from kdsl.plan.cluster_view import ClusterView

        if [pod, node, cluster].count("-") > 1:
            raise KdslError("only one of --pod, --node and --cluster can be `-`")
        values: dict[str, Value] = {}
        classes = PodClasses()
        around = None if cluster is None else self._read(cluster, classes)
        if pod is not None:
            read = self._read(pod, PodClasses(classes.known))
            values["pod"] = PodInfo.of(self._only(read.pods, "pod", pod))
        facts = None
        if node is not None:
            facts = NodeFacts.of(self._only(self._read(node).nodes, "node", node))
        if around is None:
            if facts is not None:
                values["node"] = NodeInfo.of(facts)
        else:
            snapshot = self._snapshot(around, facts)
            if facts is not None:
                values["node"] = snapshot.node(facts.name)
            values["cluster"] = ClusterView(snapshot)
            if isinstance(of := values.get("pod"), PodInfo):
                values["pod"] = snapshot.catalog.complete(of)
        self._complain()
        return values

    def _snapshot(self, around: ReadResult, facts: NodeFacts | None) -> Snapshot:
        """Return the cluster of these objects, in which the node of --node replaces its namesake."""
        from kdsl.cluster.objects.node import NodeFacts
        from kdsl.cluster.objects.pod import PodInfo
        from kdsl.cluster.snapshot.cache import ClusterCache

        cache = ClusterCache()
        for each in around.nodes:
            if facts is None or each.metadata.name != facts.name:
                cache.add_node(NodeFacts.of(each))
        if facts is not None:
            cache.add_node(facts)
        for pod in map(PodInfo.of, around.pods):
            if pod.node_name and not pod.is_finished:
                cache.add_pod(pod)
        for thing in around.catalog:
            cache.put(thing)
        return cache.snapshot()

    def _read(self, path: str, classes: PodClasses | None = None) -> ReadResult:
        from kdsl.cluster.read.reader import read_objects

        read = read_objects([path], sys.stdin.buffer, classes=classes)
        self.found.extend(read.diagnostics)
        return read

    def _only(self, objects: tuple[Value, ...], kind: str, path: str) -> Value:
        """Return the one object of a file."""
        if len(objects) != 1:
            self._complain()
            raise KdslError(f"--{kind} needs a file with one {kind}, `{path}` has {len(objects)}")
        return objects[0]

    def _complain(self) -> None:
        """Print the errors of the files; errors end the command."""
        if self.found:
            print_diagnostics(self.found)
        if has_errors(self.found):
            sys.exit(2)


def _with_help(diagnostic: Diagnostic, values: Mapping[str, Value], views: Views) -> Diagnostic:
    """Add which option defines `pod` and the like, or which rule knows the name."""
    from kdsl.check.model.codes import CheckCode

    name = diagnostic.span.text if diagnostic.span else ""
    option = _NEEDS.get(name)
    if option is not None and option not in values:
        return replace(diagnostic, help=(f"say which one with `--{option} FILE`",))
    if name in values or diagnostic.code != CheckCode.UNKNOWN_NAME:
        return diagnostic
    places = {scope.partition(".")[0] for scope, names in views.scopes.items() if name in names}
    if not places:
        return diagnostic
    known = " or ".join(f"a {place}" for place in sorted(places))
    return replace(diagnostic, help=(f"only {known} has it; here are the names of a {_SCOPE}",))


def _refuse(diagnostics: Iterable[Diagnostic]) -> NoReturn:
    print_diagnostics(diagnostics)
    sys.exit(2)
