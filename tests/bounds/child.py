"""Runs commands over rules that would take forever: `python -m tests.bounds.child FOLDER`, whose rules are there.

The process may have so much memory, and every command so much processor time; what takes more ends the process. A
line of JSON goes out for each command that came to an end.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bounds.attacks import LENGTH, PREDICATES, SCORES, random_predicates, rule_file
from tests.cli.command_line import kdsl

SECONDS = 20
"""What a command may take of a processor. Each takes less than four of them."""
BYTES = 2 << 30
"""The address space of the process; it needs about a quarter."""
CHOSEN = (
    "a list of itself, constant",
    "a list of itself, of the pod",
    "a map of itself",
    "a text formatted",
    "one long text many times",
    "a value for every item",
    "forty values of the pod",
    "a question with a large name",
    "reasons without end",
)
"""Attacks that are tried with every command."""
EXPLAINED = ("a list of itself, of the pod", "reasons without end")
TESTED = {"short": 'let r = lists.range(9000)\nrequire r.all(i, r.all(k, k < i + node.podCount)) else "x"'}
"""A rule that is tested with mistakes put into it."""

NODE = """apiVersion: v1
kind: Node
metadata: {{name: n{0}, labels: {{zone: z{1}}}}}
status: {{allocatable: {{cpu: "4", memory: 8Gi, pods: "110"}}, capacity: {{cpu: "4", memory: 8Gi, pods: "110"}}}}
---
"""
POD = """apiVersion: v1
kind: Pod
metadata: {{name: p{0}, namespace: d, uid: p{0}}}
spec: {{schedulerName: t{0}, containers: [{{name: c, image: i, resources: {{requests: {{cpu: 10m}}}}}}]}}
---
"""
TEST = """apiVersion: kdsl.dev/v1
kind: RuleTest
predicate: attacks.P0
rules: [tested.kdsl]
fixtures:
  nodes: {a: {cpu: "4"}, b: {like: a}}
  pods: {p: {cpu: "1"}}
tests:
- {name: none fits, pod: p, expect: {feasible: []}}
"""


def write(folder: Path) -> None:
    """Write the rules, clusters with a pod for each of them, and a test."""
    predicates = {name: PREDICATES[name] for name in CHOSEN} | random_predicates(1, 2)
    (folder / "rules").mkdir()
    (folder / "rules" / "all.kdsl").write_text(rule_file(predicates, SCORES))
    nodes = "".join(NODE.format(at, at % 3) for at in range(15))
    pods = [POD.format(at) for at in range(len(predicates) + len(SCORES))]
    (folder / "cluster.yaml").write_text(nodes + "".join(pods))
    for at, pod in enumerate(pods):
        (folder / f"{at}.yaml").write_text(nodes + pod)
    (folder / "tests").mkdir()
    (folder / "tests" / "tested.kdsl").write_text(rule_file(TESTED, {}))
    (folder / "tests" / "tested.test.yaml").write_text(TEST)


def _nested(first: str, twice: str) -> str:
    """Return an expression in which a value is put into another, again and again; `@` is the one before."""
    for depth in range(LENGTH):
        name = f"x{depth}"
        first = f"cel.bind({name}, {first}, {twice.replace('@', name)})"
    return first


def commands(folder: Path) -> Iterator[list[str]]:
    """Yield every command that evaluates or analyses rules."""
    rules, file = str(folder / "rules"), str(folder / "rules" / "all.kdsl")
    yield ["check", rules]
    yield ["check", "--plan", rules]
    yield ["lint", rules]
    yield ["fmt", "--diff", rules]
    yield ["convert", file]
    yield ["show", "attacks.p0", "--rules", rules]
    yield ["diff", "attacks.p0", "attacks.p1", "--rules", rules]
    yield ["diff", rules, str(folder / "tests" / "tested.kdsl")]
    for more in (["-o", "json"], ["--parallelism", "4"]):
        yield ["simulate", "--cluster", str(folder / "cluster.yaml"), "--rules", rules, *more]
    for at in map(CHOSEN.index, EXPLAINED):
        cluster = str(folder / f"{at}.yaml")
        yield ["explain", f"d/p{at}", "--cluster", cluster, "--rules", rules, "-o", "json"]
    yield ["test", "--cover", "--mutate", str(folder / "tests")]
    for dynamic in ([], ["--dynamic"]):
        yield ["eval", _nested("[1]", "[@, @]"), *dynamic]
    yield ["eval", _nested("'a'", "@ + @")]
    yield ["eval", "--dynamic", _nested("[1]", "[1, @, @]"), "-o", "json"]


def main() -> None:
    folder = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    write(folder)
    for command in commands(folder):
        print(json.dumps({"begins": command}), flush=True)
        before = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(before) + 1 + SECONDS, resource.RLIM_INFINITY))
        ended = kdsl(*command)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        figures = {"seconds": round(time.process_time() - before, 2), "mebibytes": peak}
        written = {"written": len(ended.stdout), "exit": ended.exit_code, "said": ended.stderr[-300:]}
        print(json.dumps({"ended": command} | figures | written), flush=True)
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main()
