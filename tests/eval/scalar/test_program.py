"""Generated functions: their text holds nothing of a rule file, and equal shapes share their code."""

from __future__ import annotations

import keyword
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType

import pytest
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Var
from kdsl.check.model.types import BOOL, INT, STRING, list_of, map_of
from kdsl.check.views.view import load_views
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.scalar import Compiler, program
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.scalar.program import MOST_NESTED
from kdsl.eval.views import attribute_of

from tests.plan.lab import check, evaluate, node, nodes_of, predicate, statuses

TYPES = {"hostile": STRING, "n": INT, "m": map_of(STRING, STRING), "l": list_of(STRING), "b": BOOL}
EXPRESSIONS = [
    """hostile == "'); import os; ('" && l.exists(evil, evil == "__import__")""",
    'm["x\\ny"] + string(n * 86753) + m[?"__class__"].orValue("__subclasses__")',
    "l.map(evil, {evil: 86753.5, 'k__': b'eval'}).size() > 86753 ? [86753u] : []",
    "l.map(evil, n > 0, evil.size() + 86753).sum() > 0",
    "cel.bind(evil, n + 86753, evil / evil) == 1 || 'a'.matches('(evil)+')",
    "timestamp('1986-07-05T03:00:00Z').getFullYear() == 86753 || optional.of(l).optMap(evil, evil).hasValue()",
]
WRITTEN = frozenset(
    [
        "tuple",
        "sum",
        "len",
        "type",
        "enumerate",
        "isinstance",
        "str",
        "bytes",
        "get",
        "items",
        "spend",
        "left",
        "error",
        "min",
        "max",
        "copy",
        "present",
        "value",
        "facts",
        "entries",
        "with_traceback",
    ]
)
ATTRIBUTES = frozenset([attribute_of(name) for view in load_views().types.values() for name in view.fields])
"""The attributes that fields of views are read from."""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of all functions that are compiled, which may be known already."""
    texts: list[str] = []
    code = program._code.__wrapped__

    def recorded(text: str, parameters: str) -> object:
        texts.append(text)
        return code(text, parameters)

    monkeypatch.setattr(program, "_code", recorded)
    return texts


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_no_text_of_a_rule_becomes_source(text: str, written: list[str]) -> None:
    evaluate(text, TYPES, "x", 3, {"a": "b"}, ("a",), True)
    assert_generic(written)


def test_no_text_of_a_statement_becomes_source(written: list[str]) -> None:
    plugin = predicate(
        """
        report all
        let wicked = node.labels.map(hostile, hostile + "evil '")
        require wicked.size() < 86753 else pending "os.system('evil') ${wicked.size() + 86753}"
        for evil, worse in node.labels where worse != "__import__" {
          let bad = evil + "\\n"
          require bad.size() > 86753 else unresolvable "__class__ ${bad}"
          for hostile in ["'evil'"] { require hostile == bad else "evil" }
        }
        """
    )
    found = statuses(plugin, PodInfo("p"), nodes_of(node("a", labels={"evil": "86753"}), node("b")))
    assert found["a"].reasons == ("__class__ evil\n",)
    assert_generic(written)


def assert_generic(written: list[str]) -> None:
    assert written
    for source in written:
        assert not re.search(r"['\"\\]|86753|[^\x20-\x7e\n]", source), source
        for name in re.findall(r"[A-Za-z_]\w*", source):
            known = keyword.iskeyword(name) or re.fullmatch(r"[kafgimnoerstvwx]\d*|EvalError|UNSET", name)
            assert known or name in WRITTEN or name in ATTRIBUTES, source


def test_expressions_that_differ_in_constants_share_their_code() -> None:
    first, second = (Compiler({}, {}).compile(check(f"n * 2 < {bound}", TYPES)) for bound in (3, 40))
    assert isinstance(first, FunctionType) and isinstance(second, FunctionType)
    assert first.__code__ is second.__code__


def test_several_threads_compile_at_once() -> None:
    """Macros over nodes are compiled at their first use, which is in the threads that filter nodes."""
    compiler, exprs = (
        Compiler({}, {}),
        [check(f"l.map(e, e + '{at}')[0] + '-{at}'", TYPES) for at in range(200)],
    )
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            compiled = list(pool.map(compiler.compile, exprs))
    finally:
        sys.setswitchinterval(interval)
    slots = 1 + max(part.slot for expr in exprs for part in walk(expr) if isinstance(part, Var))
    for at, closure in enumerate(compiled):
        frame = [*[("a",)] * slots, Meter.of(1000)]
        assert closure(frame) == f"a{at}-{at}"


def test_deep_expressions_are_compiled_in_parts() -> None:
    depth = 3 * MOST_NESTED
    assert evaluate("n + (" * depth + "n" + ")" * depth, {"n": INT}, 1) == depth + 1
