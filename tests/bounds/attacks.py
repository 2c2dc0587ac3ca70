"""Rules that are short and would take forever, or all memory, if nothing stopped them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

LENGTH = 40
QUEUE = "queue Q { order by pod.priority desc, pod.queuedAt }\n"


def doubling(first: str, twice: str, length: int = LENGTH) -> str:
    """Return a chain of `let`s from s0 to the last one, `s`; `@` is the one before."""
    chain = "".join(f"let s{at} = {twice.replace('@', f's{at - 1}')}\n" for at in range(1, length))
    return f"let s0 = {first}\n{chain}let s = s{length - 1}\n"


def _values(first: str, each: str, count: int = LENGTH) -> str:
    """Return many `let`s that each take about as much as a value may; `@` is the number of each."""
    lets = "".join(f"let v{at} = {each.replace('@', str(at))}\n" for at in range(count))
    return f'{first}{lets}require {" + ".join(f"v{at}" for at in range(count))} < 0 else "x"\n'


LARGE = "let r = lists.range(900)\n"
NESTED = "r.map(x, r.map(y, x + y + pod.priority)).size() + @"
USE = 'require s.size() == 3 else "s is ${s.size()}"'
TEXT = 'require s == "" else "${s} is not empty"'

PREDICATES = {
    "a list of itself, constant": doubling("[1]", "[@, @]") + USE,
    "a list of itself, of the pod": doubling("[pod.name]", "[@, @]") + USE,
    "a list of itself, of the node": doubling("[node.name]", "[@, @]") + USE,
    "a list of itself, compared": doubling("[node.name]", "[@, @]") + 'require s == [s38, s38] else "x"',
    "a map of itself": doubling('{"a": pod.name}', '{"a": @, "b": @}') + USE,
    "a macro that repeats a list": doubling("[pod.name]", "lists.range(2).map(x, @)") + USE,
    "a map that repeats a list": doubling("[pod.name]", "lists.range(2).transformMap(k, v, @).transformList(k, v, v)")
    + USE,
    "an optional of itself": doubling("optional.of([pod.name])", "optional.of([@, @])")
    + 'require !s.hasValue() else "x"',
    "a text twice, constant": doubling('"a"', "@ + @") + TEXT,
    "a text twice, of the pod": doubling("pod.name", "@ + @") + TEXT,
    "a text twice, of the node": doubling("node.name", "@ + @") + TEXT,
    "a text joined": doubling("node.name", "[@, @].join()") + TEXT,
    "a text replaced": doubling('node.name + "a"', '@.replace("a", "aaaaaaaa")') + TEXT,
    "a text formatted": doubling("node.name", '"%s%s".format([@, @])') + TEXT,
    "a list joined to itself": doubling("[node.name]", "@ + @") + USE,
    "a list taken apart": doubling("[node.name]", "[@, @].flatten()") + USE,
    "one long text many times": doubling("pod.name", "@ + @", 16)
    + 'let many = lists.range(9000).map(i, s)\nrequire many.join(",") == node.name else "${many.join()}"',
    "ranges in ranges": "let r = lists.range(9000)\n"
    'require r.map(i, lists.range(9000)).map(x, x.size()).sum() < node.podCount else "x"',
    "ranges thrown away": "let r = lists.range(9000)\n"
    'require r.all(i, r.all(k, lists.range(9000 - i - k).size() >= node.podCount)) else "x"',
    "a value for every item": "let r = lists.range(9000)\n"
    "require r.all(i, cluster.nodes.filter(n, r.exists(k, k == 8999 && n.podCount < i)).size() >= node.podCount)"
    ' else "x"',
    "a loop over a value for every item": "for i in lists.range(9000) {\n"
    "let t = topology('zone').count(p, p.priority < i)\n"
    'require t.here(node) >= 0 && i != 8999 else "x ${i}"\n}',
    "forty values of the pod": _values(LARGE, NESTED),
    "forty values of the node": _values(LARGE.replace("900", "60"), NESTED.replace("pod.priority", "node.podCount")),
    "a question with a large name": doubling("[pod.name]", "[@, @]")
    + "require topology('zone').count(p, [p.name] == s0 || s.size() == p.priority).here(node) < 0 else \"x\"",
    "reasons without end": "report all\n" + doubling("node.name", "@ + @", 14)
    + 'for i in lists.range(9000) { require i < 0 else "${i} ${s}" }',
    "a reason without end": doubling("node.name", "@ + @", 18) + 'require s == "" else "${s}${s}${s}"',
    "an error without end": doubling("pod.name", "@ + @", 18) + 'require int(s) == node.podCount else "x"',
}  # fmt: skip
"""Bodies of predicates, by what is wrong with them."""

SCORES = {
    "a list of itself": doubling("[node.name]", "[@, @]") + "value s.size()",
    "forty values": LARGE
    + "".join(f"let v{at} = {NESTED.replace('@', str(at))}\n" for at in range(LENGTH))
    + f"value {' + '.join(f'v{at}' for at in range(LENGTH))}",
}
"""Bodies of scores."""

FUNCTIONS = "fn f0(x: int): int = x\n" + "".join(
    f"fn f{at}(x: int): int = f{at - 1}(x) + f{at - 1}(x)\n" for at in range(1, LENGTH)
)


def rule_file(predicates: dict[str, str], scores: dict[str, str]) -> str:
    """Return a file with a profile of its own for each rule: its scheduler is `t0`, `t1` and so on."""
    parts = ["kdsl 1\npackage attacks\n", QUEUE, FUNCTIONS]
    parts += [
        f"/// {name}\npredicate P{at} {{\n{body}\n}}\n" for at, (name, body) in enumerate(predicates.items())
    ]
    parts += [f"/// {name}\nscore S{at} {{\n{body}\n}}\n" for at, (name, body) in enumerate(scores.items())]
    rules = [f"predicates {{ P{at} }}" for at in range(len(predicates))]
    rules += [f"scores {{ S{at} weight 1 }}" for at in range(len(scores))]
    parts += [f'profile p{at} {{\nscheduler "t{at}"\nqueue Q\n{rule}\n}}\n' for at, rule in enumerate(rules)]
    return "".join(parts)


def random_predicates(seed: int, count: int) -> dict[str, str]:
    """Return predicates made of values that share others, however it comes."""
    random = Random(seed)
    return {f"seed {seed}, rule {at}": "".join(_random_body(random)) for at in range(count)}


_STEPS = (
    ("text", "text", "@ + @"),
    ("text", "text", '@.replace("a", @)'),
    ("text", "text", '"%s %s".format([@, @])'),
    ("text", "list(text)", '@.split("a")'),
    ("text", "list(text)", "[@, @]"),
    ("list(text)", "text", '@.join("aa")'),
    ("list(text)", "list(text)", "@ + @"),
    ("list(text)", "list(text)", "@.map(x, x + x)"),
    ("list(text)", "list(text)", '@.map(x, @.join("a"))'),
    ("list(text)", "deep", "[@, @]"),
    ("deep", "deep", "@ + @"),
    ("deep", "deep", "@.map(x, x + x)"),
    ("deep", "list(text)", "@.flatten()"),
    ("deep", "list(text)", "@.map(x, x.join())"),
)


def _random_body(random: Random) -> Iterator[str]:
    yield f"let s0 = {random.choice(('pod.name', 'node.name', 'pod.name + node.name'))}\n"
    kind = "text"
    for at in range(1, LENGTH):
        _, kind, step = random.choice([each for each in _STEPS if each[0] == kind])
        yield f"let s{at} = {step.replace('@', f's{at - 1}')}\n"
    yield f'require s{LENGTH - 1} == s{LENGTH - 1} && s{LENGTH - 1}.size() < 0 else "${{s{LENGTH - 1}.size()}}"\n'
