"""The contents of checked predicates, scores and queues."""

from __future__ import annotations

import pytest
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedForEach, CheckedLet, CheckedRequire
from kdsl.check.model.types import DOUBLE, INT, BindingTime
from kdsl.check.views.view import time_of
from kdsl.lang.choices import ErrorAction, Normalization, RejectionCode

from tests.check.programs import check_predicate, check_queue, check_score, findings


def test_a_predicate() -> None:
    predicate = check_predicate("""
      report all
      param limit: int = 10
      on error abort
      applies when pod.priority > 0
      let spare = limit - node.podCount
      require spare > 0 else unresolvable "full: ${spare}"
      for k, v in pod.nodeSelector where k != "" {
        require node.labels[?k].orValue("") == v else "other ${k}"
      }
    """)
    assert (predicate.name, predicate.qualified) == ("P", "test.P")
    assert [param.variable.name for param in predicate.params] == ["limit"]
    assert predicate.report_all
    assert [type(statement) for statement in predicate.body] == [CheckedLet, CheckedRequire, CheckedForEach]
    assert predicate.reads == {"pod.priority", "node.usage", "pod.nodeSelector", "node.static"}
    assert time_of(predicate.reads) is BindingTime.USAGE
    assert predicate.on_error is not None and predicate.on_error.action is ErrorAction.ABORT
    assert set(predicate.scope) == {"pod", "node", "cluster"}


def test_codes_and_reasons() -> None:
    predicate = check_predicate("""
      require node.podCount > 1 else "a"
      require node.podCount > 2 else pending "b ${node.name} c"
    """)
    first, second = (statement for statement in predicate.body if isinstance(statement, CheckedRequire))
    assert (first.code, first.reason.parts) == (RejectionCode.UNSCHEDULABLE, ("a",))
    assert second.code is RejectionCode.PENDING
    assert [part if isinstance(part, str) else part.span.text for part in second.reason.parts] == [
        "b ",
        "node.name",
        " c",
    ]


def test_every_variable_has_a_slot_of_its_own() -> None:
    predicate = check_predicate("""
      let a = [1].map(x, x)
      for x in a { require x > 0 && [2].all(y, y > x) else "${x}" }
      for x, y in a { require x > y else "${x}" }
    """)
    let, first, second = predicate.body
    assert (
        isinstance(let, CheckedLet)
        and isinstance(first, CheckedForEach)
        and isinstance(second, CheckedForEach)
    )
    named = [*predicate.scope.values(), let.variable, *first.variables, *second.variables]
    assert len({variable.slot for variable in named}) == len(named)
    assert predicate.slots == len(named) + 2


def test_narrow() -> None:
    predicate = check_predicate(
        'narrow to pod.requiredNodeAffinity.nodeNames else unresolvable "none of them"'
    )
    assert predicate.narrow is not None
    assert predicate.narrow.code is RejectionCode.UNRESOLVABLE
    assert predicate.narrow.names.time is BindingTime.POD


def test_a_score() -> None:
    score = check_score("""
      param factor = 2.5
      applies when pod.priority > 0
      value double(node.podCount) * factor
      normalize by max == min ? factor : (value - min) / (max - min)
      on error zero
    """)
    assert score.value.type == DOUBLE
    assert score.normalize.kind is Normalization.BY
    assert score.normalize.by is not None and score.normalize.by.time is BindingTime.SCORES
    assert {"value", "min", "max"} < set(score.scope)
    assert score.scope["max"].type == DOUBLE
    assert len(score.applies) == 1


def test_a_score_is_not_normalised_unless_it_says_so() -> None:
    score = check_score("value 1")
    assert (score.normalize.kind, score.normalize.by, score.value.type) == (Normalization.NONE, None, INT)
    assert check_score("value 1 normalize reverse").normalize.kind is Normalization.REVERSE


def test_a_queue() -> None:
    queue = check_queue("""
      let team = pod.labels[?"team"].orValue("")
      admit when team != "" else "pods need a team"
      order by pod.priority desc, team, pod.queuedAt
    """)
    assert [key.descending for key in queue.order] == [True, False, False]
    assert queue.reads == {"pod.priority", "pod.labels", "queue"}
    assert set(queue.scope) == {"pod", "now"}


def test_functions_bring_what_they_read() -> None:
    declarations = """
      param base = 10
      fn crowd(n: Node): int = n.podCount + base
      fn twice(n: Node): int = crowd(n) * 2
    """
    predicate = check_predicate('require twice(node) < 5 else "crowd"', declarations)
    assert predicate.reads == {"node.usage"}


def test_a_typed_parameter_takes_its_type() -> None:
    predicate = check_predicate('param names: list(string) = [] require node.name in names else "no"')
    assert str(predicate.params[0].variable.type) == "list(string)"


@pytest.mark.parametrize(
    ("key", "fits"),
    [
        ("pod.name", True),
        ("pod.priority > 3", True),
        ("pod.queuedAt", True),
        ("pod.requests['cpu']", True),
        ("int(pod.queuedAt)", True),
        ("pod.priority / 10", True),
        ("pod.images[?0].orValue('')", True),
        ("pod.labels.size()", True),
        ("quantity('1')", True),
        ("f(pod.priority)", True),
        ("pod.priority / -1", False),
        ("pod.priority + 1", True),
        ("int(pod.createdAt) - 60 * pod.priority", True),
        ("pod.priority * pod.priority", True),
        ("pod.priority * pod.priority * 3", False),
        ("pod.priority * 9000000000", False),
        ("few * 1000", True),
        ("math.least([pod.priority, f(many)]) + 1", False),
        ("many + 1", False),
        ("math.least(many, 9) + math.greatest(many, 9)", False),
        ("math.greatest(math.least(many, 9), -9) * 1000", True),
        ("(pod.priority > 0 ? 1 : -1) * pod.labels.size()", True),
        ("(pod.priority > 0 ? 1 : many) * 2", False),
        ("int(pod.name)", False),
        ("quantity(pod.name)", False),
        ("g(pod.priority)", False),
        ("x", False),
        ("double(pod.priority)", False),
        ("pod.tolerations", False),
        ("{pod.name: 1, pod.namespace: 2}.size()", False),
        ("pod.labels.transformMapEntry(k, v, {v: k}).size()", False),
    ],
)
def test_sort_keys(key: str, fits: bool) -> None:
    declarations = "fn f(n: int): int = n / 2 fn g(n: int): int = 2 / n\n"
    lets = "let x = 1 / pod.priority let few = pod.images.size() let many = pod.labels[?'n'].optMap(n, 1).orValue(2)"
    found = findings(f"{declarations} queue Q {{ {lets} order by {key} }}")
    assert [code for code, _ in found] == ([] if fits else [CheckCode.UNFIT_SORT_KEY])


def test_lets_that_use_each_other_twice_are_followed_once() -> None:
    lets = "\n".join(f"let a{n + 1} = a{n} && a{n}" for n in range(60))
    queue = check_queue(f'let a0 = "k" in pod.labels\n{lets}\norder by a60, a60 ? pod.labels["k"] : ""')
    assert len(queue.lets) == 61


@pytest.mark.parametrize(
    "late",
    [
        'applies when node.labels["k"] == "v"',
        'narrow to optional.of([pod.labels["k"]]) else "no"',
        "on error reject \"${pod.labels['k']}\"",
    ],
)
def test_what_runs_first_must_stand_first(late: str) -> None:
    guard = 'require "k" in node.labels && "k" in pod.labels else "none"'
    assert (CheckCode.MISPLACED, late) in findings(f"predicate P {{ {guard} {late} }}")
    text = f"predicate P {{ {late} {guard} }}"
    assert [code for code, _ in findings(text)] == [CheckCode.MAY_BE_MISSING]


def test_the_reason_of_narrow_is_known_before_any_node() -> None:
    text = 'predicate P { narrow to pod.requiredNodeAffinity.nodeNames else "not ${node.name}" }'
    assert findings(text) == [(CheckCode.TOO_LATE, "node.name")]
