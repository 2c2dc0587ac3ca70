from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selectors import NodeSelector
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.plan.rules.predicate import SKIP
from kdsl.plan.rules.predicate_plugin import PredicatePlugin

from tests.plan.lab import DEFAULT_QUEUE, compile_rules, node, nodes_of, predicate, statuses

POD = PodInfo("p", requests=Resources({"cpu": 2000}), labels=FrozenMap({"app": "web"}))
NODES = nodes_of(
    node("small", 1000, labels={"zone": "a"}),
    node("large", 8000, labels={"zone": "b"}),
)


def decide(plugin: PredicatePlugin, pod: PodInfo = POD) -> Status | Narrowed | None:
    return plugin.pre_filter(CycleState(), pod, NODES)


def test_the_first_failure_is_the_answer() -> None:
    plugin = predicate(
        """
        require node.name == "large" else pending "not large"
        require pod.requests["cpu"] <= node.allocatable["cpu"] else "no cpu"
        """
    )
    assert statuses(plugin, POD, NODES) == {
        "small": Status(Code.PENDING, ("not large",), sites=("t.kdsl:4",))
    }


def test_a_dyn_fn_checks_values_at_run_time() -> None:
    plugin = compile_rules(
        f"""
        dyn fn amount(it: dyn): int =
          type(it) == int ? int(it) : type(it) == list ? it.map(each, int(each)).sum()
            : it == null ? 0 : int(it.n)
        predicate P {{
          require amount(json.decode(node.labels[?"sizes"].orValue("null"))) > 2 else "small"
        }}
        {DEFAULT_QUEUE}
        profile p {{ scheduler "t" queue Q predicates {{ P }} }}
        """
    ).predicates[0]
    sizes = {"one": "1", "three": "3", "list": "[1, 2]", "map": '{"n": 3}', "text": '{"n": "x"}'}
    nodes = nodes_of(node("none"), *(node(name, labels={"sizes": text}) for name, text in sizes.items()))
    found = statuses(plugin, POD, nodes)
    assert {name: status.reasons[0] for name, status in found.items()} == {
        "none": "small",
        "one": "small",
        "text": "rule P failed: cannot convert 'x' to int (t.kdsl:8:19)",
    }


def test_report_all_gives_every_reason_once_and_the_gravest_code() -> None:
    plugin = predicate(
        """
        report all
        require node.name == "large" else "not large"
        for r, amount in pod.requests where amount > quantity("0") {
          require amount <= node.allocatable[r] else unresolvable "Insufficient ${r}"
          require amount <= quantity("1m") else "never said, the item ended before"
        }
        for r in ["x", "y"] { require node.name == "large" else "not large" }
        """
    )
    answer = statuses(plugin, POD, NODES)
    assert answer["small"] == Status(
        Code.UNRESOLVABLE, ("not large", "Insufficient cpu"), sites=("t.kdsl:5", "t.kdsl:7")
    )
    assert answer["large"].reasons == ("never said, the item ended before",)


def test_holes_show_values() -> None:
    plugin = predicate(
        """
        let free = node.allocatable["cpu"] - node.requested["cpu"]
        require false else "${node.name} has ${free} of ${pod.requests['cpu']}, ${node.podCount} pods, ${1.5}"
        """
    )
    assert statuses(plugin, POD, NODES)["large"].reasons == ("large has 8 of 2, 0 pods, 1.5",)


def test_conditions_on_the_pod_are_decided_at_pre_filter() -> None:
    plugin = predicate(
        """
        let wanted = pod.requests["cpu"]
        require wanted < quantity("1") else unresolvable "asks for ${wanted}"
        require node.name == "large" else "not large"
        """
    )
    assert decide(plugin) == Status(Code.UNRESOLVABLE, ("asks for 2",), sites=("t.kdsl:5",))
    assert statuses(plugin, PodInfo("q"), NODES).keys() == {"small"}


@pytest.mark.parametrize(
    "body",
    [
        'report all\nrequire pod.priority > 0 else "low"',
        'require pod.priority > 0 else pending "low"',
        'applies when node.name != ""\nrequire pod.priority > 0 else "low"',
        'require pod.priority > 0 else "low on ${node.name}"',
        'require node.name != "" else "nameless"\nrequire pod.priority > 0 else "low"',
    ],
)
def test_statements_that_wait_for_the_nodes(body: str) -> None:
    assert statuses(predicate(body), POD, NODES).keys() == {"small", "large"}


def test_applies_when() -> None:
    plugin = predicate('applies when pod.priority > 0\nrequire node.name == "large" else "not large"')
    answer = decide(plugin)
    assert isinstance(answer, Status) and answer.code is Code.SKIP
    assert statuses(plugin, PodInfo("q", priority=1), NODES).keys() == {"small"}


def test_applies_when_of_the_node_is_asked_for_every_node() -> None:
    plugin = predicate(
        'applies when node.labels[?"zone"].orValue("") == "a"\nrequire false else "zone a is closed"'
    )
    assert statuses(plugin, POD, NODES).keys() == {"small"}


def test_an_error_in_applies_when_means_that_it_applies() -> None:
    plugin = predicate('applies when 1 / pod.priority > 0\nrequire node.name == "large" else "not large"')
    assert statuses(plugin, POD, NODES).keys() == {"small"}
    plugin = predicate('applies when 1 / node.podCount > 0\nrequire node.name == "large" else "not large"')
    assert statuses(plugin, POD, NODES).keys() == {"small"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, None),
        (("large",), Narrowed(("large",))),
        ((), Status(Code.UNRESOLVABLE, ("conflict",), sites=("t.kdsl:4",))),
    ],
)
def test_narrow(names: tuple[str, ...] | None, expected: object) -> None:
    plugin = predicate('narrow to pod.requiredNodeAffinity.nodeNames else unresolvable "conflict"')
    assert decide(plugin, PodInfo("q", required_node_affinity=NodeSelector((), names))) == expected


def test_narrow_without_affinity_reads_the_empty_view() -> None:
    plugin = predicate('narrow to pod.requiredNodeAffinity.nodeNames else "conflict"')
    assert decide(plugin) is None


def test_narrow_of_a_rule_that_does_not_apply_to_all_nodes_stays_with_those_nodes() -> None:
    plugin = predicate(
        """
        applies when node.name == "small"
        narrow to pod.requiredNodeAffinity.nodeNames else unresolvable "elsewhere"
        """
    )
    pod = PodInfo("q", required_node_affinity=NodeSelector((), ("other",)))
    assert statuses(plugin, pod, NODES).keys() == {"small"}


def test_an_error_rejects_the_node_and_names_the_place() -> None:
    plugin = predicate('require 10 / node.podCount > 1 else "busy"')
    assert statuses(plugin, POD, NODES)["small"] == Status(
        Code.UNRESOLVABLE,
        ("rule P failed: division by zero (t.kdsl:4:9)",),
        sites=("t.kdsl:4",),
        faults=(Fault("P", "division by zero", "t.kdsl:4:9"),),
    )


def test_an_error_at_pre_filter_rejects_the_pod() -> None:
    answer = decide(predicate('require 10 / pod.priority > 1 else "low"'))
    assert isinstance(answer, Status) and answer.code is Code.UNRESOLVABLE
    assert "division by zero" in answer.message


def test_the_place_of_an_error_is_the_let_that_failed() -> None:
    plugin = predicate(
        """
        let share = 10 / node.podCount
        let twice = share * 2
        require twice > 1 else "busy"
        """
    )
    found = statuses(plugin, POD, NODES)["small"]
    assert found.reasons == ("rule P failed: division by zero (t.kdsl:4:13)",)
    assert found.sites == ("t.kdsl:6",)
    assert [fault.site for fault in found.faults] == ["t.kdsl:4:13"]
    answer = decide(predicate('let late = 10 / pod.priority\n require late > 1 else "low"'))
    assert isinstance(answer, Status) and answer.reasons == ("rule P failed: division by zero (t.kdsl:4:12)",)


def test_errors_do_not_end_report_all() -> None:
    plugin = predicate(
        """
        report all
        for r in [0, 1, 2] where 2 / r > 0 { require r + node.podCount == 1 else "is ${r}" }
        require node.podCount > 0 else "empty"
        """
    )
    assert statuses(plugin, POD, NODES)["small"].reasons == (
        "rule P failed: division by zero (t.kdsl:5:34)",
        "is 2",
        "empty",
    )


def test_a_loop_over_something_that_fails() -> None:
    plugin = predicate('for r in [1 / node.podCount] { require true else "x" }')
    assert statuses(plugin, POD, NODES).keys() == {"small", "large"}


@pytest.mark.parametrize(
    ("action", "code", "reason"),
    [
        ("abort", Code.ERROR, "rule P failed: division by zero (t.kdsl:5:9)"),
        ('reject "no idea about ${pod.name}"', Code.UNRESOLVABLE, "no idea about p"),
    ],
)
def test_on_error(action: str, code: Code, reason: str) -> None:
    plugin = predicate(f'on error {action}\nrequire 10 / node.podCount > 1 else "busy"')
    answer = statuses(plugin, POD, NODES)["small"]
    assert (answer.code, answer.reasons) == (code, (reason,))


def test_a_let_is_computed_where_it_is_needed() -> None:
    plugin = predicate(
        """
        let share = 10 / node.podCount
        require node.podCount == 0 || share > 1 else "busy"
        for z in ["a", "b"] {
          let here = node.labels[?"zone"].orValue("") == z
          require !here || z == "b" else "zone ${z}"
        }
        """
    )
    assert {name: status.reasons for name, status in statuses(plugin, POD, NODES).items()} == {
        "small": ("zone a",)
    }


def test_parameters_are_constants() -> None:
    plugin = predicate('param names: list(string) = ["large"]\nrequire node.name in names else "no"')
    assert statuses(plugin, POD, NODES).keys() == {"small"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('let low = pod.priority < 0\napplies when low\nrequire false else "no"', SKIP),
        (
            'let only = optional.of([pod.name])\nnarrow to only else "no"\nrequire true else "no"',
            Narrowed(("p",)),
        ),
    ],
)
def test_the_first_statements_can_read_lets(body: str, expected: Status | Narrowed) -> None:
    assert predicate(body).pre_filter(CycleState(), PodInfo("p"), nodes_of(node("a"))) == expected


def test_a_let_of_the_node_in_applies_when() -> None:
    plugin = predicate('let labelled = "k" in node.labels\napplies when labelled\nrequire false else "no"')
    nodes = nodes_of(node("a", labels={"k": "v"}), node("b"), node("c", labels={"k": "v"}))
    assert sorted(statuses(plugin, PodInfo("p"), nodes)) == ["a", "c"]


@pytest.mark.parametrize(
    "fails", ['require 1 / pod.priority > 0 else "no"', 'narrow to optional.of([pod.images[0]]) else "no"']
)
def test_an_error_that_is_explained_by_the_node_waits_for_it(fails: str) -> None:
    plugin = predicate(f'let where = node.name\non error reject "it failed on ${{where}}"\n{fails}')
    rejected = statuses(plugin, PodInfo("p"), nodes_of(node("a"), node("b")))
    assert [status.reasons for status in rejected.values()] == [
        ("it failed on a",),
        ("it failed on b",),
    ]
