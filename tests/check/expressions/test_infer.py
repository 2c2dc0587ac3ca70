"""Types, binding times and reads of expressions; the dynamic mode."""

from __future__ import annotations

import pytest
from kdsl.base.span import Source
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.notation import parse_type
from kdsl.check.model.traversal import frame_size, walk
from kdsl.check.model.typed import UNDECLARED, Bind, CallOf, Comprehension, Const, KeyOf, TypedExpr, Var
from kdsl.check.model.types import BOOL, DYN, INT, STRING, BindingTime
from kdsl.check.views.view import load_views
from kdsl.lang.parser import parse_expression

RULES = Environment(
    {
        "pod": parse_type("Pod"),
        "node": parse_type("Node"),
        "n": INT,
        "labels": parse_type("map(string, string)"),
    },
    strict=True,
)


def _typed(text: str, environment: Environment = RULES) -> TypedExpr:
    expr, problems = parse_expression(Source("test", text))
    assert expr is not None, problems
    typed, diagnostics = check_expression(expr, environment, load_views())
    assert typed is not None, [diagnostic.title for diagnostic in diagnostics]
    return typed


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1 + n", "int"),
        ("1 < 2.0", "bool"),
        ("[1, 2]", "list(int)"),
        ("[]", "list(dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("[optional.none(), optional.of(1)]", "list(optional(int))"),
        ("{'a': [1u]}", "map(string, list(uint))"),
        ("{?'a': optional.of(1)}", "map(string, int)"),
        ("labels.a + labels['b']", "string"),
        ("labels[?'a']", "optional(string)"),
        ("labels.?a.orValue('')", "string"),
        ("[1, 2].map(x, double(x))", "list(double)"),
        ("[1, 2].map(x, x > 1, x)", "list(int)"),
        ("labels.filter(k, k != '')", "list(string)"),
        ("labels.transformList(k, v, v.size())", "list(int)"),
        ("labels.transformMap(k, v, v.size())", "map(string, int)"),
        ("labels.transformMapEntry(k, v, {v.size(): k})", "map(int, string)"),
        ("['a'].transformMap(i, v, v)", "map(int, string)"),
        ("node.taints.sortBy(t, t.key)", "list(Taint)"),
        ("[].sortBy(x, x)", "list(dyn)"),
        ("[[1]].flatten()", "list(int)"),
        ("[[[1]]].flatten(2)", "list(int)"),
        ("[[[1]]].flatten(1)", "list(list(int))"),
        ("[[[1]]].flatten(0)", "list(list(list(int)))"),
        ("[[1]].flatten(9)", "list(int)"),
        ("[1].flatten(n)", "list(int)"),
        ("[[1]].flatten(n)", "list(dyn)"),
        ("pod.requests.transformList(r, q, q * 2)", "list(quantity)"),
        ("pod.requests.all(r, r in node.allocatable)", "bool"),
        ("pod.requests['cpu'] / node.allocatable['cpu']", "int"),
        ("pod.requests['cpu'] / 2 + 2 * quantity('1')", "quantity"),
        ("ratio(pod.requests['cpu'], quantity('1'))", "double"),
        ("cel.bind(x, [1], x + [2])", "list(int)"),
        ("optional.of(1).optMap(x, string(x))", "optional(string)"),
        ("optional.of(1).optFlatMap(x, labels[?string(x)])", "optional(string)"),
        ("optional.none().or(optional.of(1)).value()", "int"),
        ("node.images[?'a'].sizeBytes", "optional(int)"),
        ("node.images[?'a'].?sizeBytes.orValue(0)", "int"),
        ("pod.?requiredNodeAffinity", "optional(NodeSelector)"),
        ("pod.?name", "optional(string)"),
        ("pod.tolerates(taint('a', '', ''))", "bool"),
        ("math.greatest(1, n, 3)", "int"),
        ("[duration('1s')].sum()", "duration"),
        ("timestamp('2026-01-01T00:00:00Z') - duration('1h')", "timestamp"),
        ("type(1) == int", "bool"),
    ],
)
def test_types(text: str, type_: str) -> None:
    assert str(_typed(text).type) == type_


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("1 + 1", set()),
        ("pod", set()),
        ("pod.name", {"pod.name"}),
        ("pod.name == node.name", {"pod.name", "node.static"}),
        ("pod.tolerates(node.taints[0])", {"pod.tolerations", "node.static"}),
        (
            "node.taints.exists(t, pod.tolerates(t) && node.podCount > 1)",
            {"pod.tolerations", "node.static", "node.usage"},
        ),
        ("node.images[?'a'].nodeCount", {"node.static", "cluster.images"}),
        ("has(pod.requiredNodeAffinity)", {"pod.requiredNodeAffinity"}),
        ("pod.requiredNodeAffinity.matches(node)", {"pod.requiredNodeAffinity", "node.static"}),
        ("cel.bind(x, node.podCount, 1)", {"node.usage"}),
        ("node.usedHostPorts[0].port", {"node.usage"}),
    ],
)
def test_reads(text: str, reads: set[str]) -> None:
    assert _typed(text).reads == reads


def test_a_call_names_its_overload_where_the_types_tell() -> None:
    typed = _typed("n + 1")
    assert isinstance(typed, CallOf)
    assert (typed.function, typed.overload, typed.member) == ("_+_", "add_int64", False)
    member = _typed("labels.size()")
    assert isinstance(member, CallOf)
    assert (member.function, member.overload, member.member) == ("size", "map_size", True)
    method = _typed("pod.tolerates(node.taints[0])")
    assert isinstance(method, CallOf)
    assert (method.function, method.overload, len(method.args)) == ("Pod.tolerates", "Pod.tolerates", 2)


def test_variables_of_one_name_have_slots_of_their_own() -> None:
    typed = _typed("[1].map(x, x) + [2].map(x, x)")
    slots = [part.variables[0].slot for part in walk(typed) if isinstance(part, Comprehension)]
    assert len(set(slots)) == 2
    assert min(slots) == len(RULES.variables)
    assert frame_size(typed) == len(RULES.variables) + 2


def test_a_field_behind_an_optional_is_spelt_out() -> None:
    typed = _typed("node.images[?'a'].sizeBytes")
    assert isinstance(typed, Bind)
    assert typed.macro == "optMap"


def test_presence_of_a_key() -> None:
    typed = _typed("has(labels.a)")
    assert isinstance(typed, KeyOf)
    assert typed.test and typed.type == BOOL


# ---- dynamic mode ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["[1, 'a']", "1 + 1.0", "f(1)", "x || true", "true ? 1 : 'a'", "1.foo", "null", "dyn(1) < 2u"]
)
def test_dynamic_mode_leaves_to_run_time_what_it_cannot_know(text: str) -> None:
    _typed(text, Environment())


def test_dynamic_mode_takes_no_wrong_macro() -> None:
    expr, _ = parse_expression(Source("test", "[1].map(1, 2)"))
    assert expr is not None
    typed, (diagnostic,) = check_expression(expr, Environment())
    assert typed is None
    assert diagnostic.code == "K0209"


def test_an_undeclared_name_has_no_slot() -> None:
    typed = _typed("x", Environment())
    assert isinstance(typed, Var)
    assert (typed.slot, typed.type) == (UNDECLARED, DYN)


def test_names_are_looked_up_from_the_container_outwards() -> None:
    environment = Environment({"a.b.x": INT, "a.x": STRING, "x": BOOL}, container="a.b")
    assert _typed("x", environment).type == INT
    assert _typed(".x", environment).type == BOOL
    assert _typed("x", Environment(environment.variables, container="a.c")).type == STRING
    assert _typed("['s'].map(x, x)[0]", environment).type == STRING


def test_type_names_are_constants() -> None:
    typed = _typed("google.protobuf.Timestamp", Environment())
    assert isinstance(typed, Const)
    assert (typed.value, typed.time) == (parse_type("timestamp"), BindingTime.STATIC)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("has(1)", "has"),
        ("cel.bind(1, 2, 3)", "cel.bind"),
        ("cel.bind(x, 2)", "cel.bind"),
        ("optional.of(1).optMap(1, 2)", "optMap"),
        ("optional.of(1).optMap(a.b, 2)", "optMap"),
        ("optional.of(1).optFlatMap(x)", "optFlatMap"),
        ("[1].map(1, 2)", "map"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_a_macro_of_another_form_is_refused(text: str, name: str, strict: bool) -> None:
    expr, _ = parse_expression(Source("e", text))
    assert expr is not None
    typed, (found,) = check_expression(expr, Environment(strict=strict))
    assert typed is None
    assert (found.code, found.title) == (CheckCode.MACRO_FORM, f"`{name}` is not used like this")
    assert found.help


@pytest.mark.parametrize(("text", "symbol"), [("1 && true", "&&"), ("true || n", "||"), ("!n", "!")])
def test_an_operand_that_is_no_bool_is_named_by_its_operator(text: str, symbol: str) -> None:
    expr, _ = parse_expression(Source("test", text))
    assert expr is not None
    _, (found,) = check_expression(expr, RULES, load_views())
    assert found.title == f"an operand of `{symbol}` must be `bool`, not `int`"
