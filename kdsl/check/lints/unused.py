"""A declaration is not used: a `let` or `param` of a rule; in packages with profiles also a function, a
parameter, or a rule that no profile has.

Readers assume that it affects decisions. Often a profile should have it.

```
score S {
  let free = node.allocatable["cpu"] - node.requested["cpu"]
  value node.podCount
}
```

Use it or remove it. Packages without profiles, and packages that another package imports, are libraries:
their declarations are for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from kdsl.base.diagnostic import Diagnostic, Fix, Severity
from kdsl.check.lints.lint import Lint, Subject
from kdsl.check.lints.removal import removal
from kdsl.lang.expression_tree import Call, Ident, Node, Select
from kdsl.lang.profile_tree import AddPredicate, AddScore, PredicateList, ScoreList, UsePreemption, UseQueue
from kdsl.lang.program import Package
from kdsl.lang.tree import (
    Declaration,
    Device,
    Fn,
    Let,
    Name,
    Param,
    Predicate,
    Preemption,
    Profile,
    Queue,
    Score,
)


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each unused `let` and parameter of rules, then for each unused declaration of
    files.
    """
    packages = subject.program.packages.values()
    names = {name for package in packages for each in package.declarations for name in _named(each)}
    profiles = [each for package in packages for each in package.declarations if isinstance(each, Profile)]
    used = {rule for profile in profiles for rule in _rules(profile)}
    imported = {each.package.text for file in subject.program.files for each in file.imports}
    for package in packages:
        for declaration in package.declarations:
            yield from _inside(declaration)
        if package.name not in imported and any(isinstance(each, Profile) for each in package.declarations):
            yield from _of_package(package, names, used)


def _inside(declaration: Declaration) -> Iterator[Diagnostic]:
    if not isinstance(declaration, Predicate | Score | Queue | Preemption | Device | Profile):
        return
    names = set(_named(declaration))
    for node in _nodes(declaration):
        if isinstance(node, Let | Param) and node.name.text not in names:
            if isinstance(node, Let):
                yield _warning("`let`", node.name, "nothing in its rule uses it", removal(node))
            else:
                # A profile may `set` it.
                yield _warning("parameter", node.name, "nothing in its rule uses it")


def _of_package(
    package: Package, names: set[str], used: set[tuple[type[Declaration], str]]
) -> Iterator[Diagnostic]:
    for declaration in package.declarations:
        name = declaration.name
        match declaration:
            case Fn() | Param() if name.text not in names:
                what = "function" if isinstance(declaration, Fn) else "parameter"
                yield _warning(what, name, "no rule uses it", removal(declaration))
            case Predicate() | Score() | Queue() | Preemption() if (type(declaration), name.text) not in used:
                yield _warning(type(declaration).__name__.lower(), name, "no profile has it")
            case _:
                pass


def _nodes(tree: Node) -> Iterator[Node]:
    """Yield a syntax tree and all its parts, without recursion."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        for each in reversed(fields(node)):
            value = getattr(node, each.name)
            parts = value if isinstance(value, tuple) else (value,)
            pending += [part for part in reversed(parts) if isinstance(part, Node)]


def _named(tree: Node) -> Iterator[str]:
    """Yield the names that expressions use, for qualified names the last word.

    A field of that name counts as a use: a missing warning is better than a wrong one.
    """
    for node in _nodes(tree):
        match node:
            case Ident(name=name) | Select(field=name) | Call(function=name):
                yield name
            case _:
                pass


def _rules(profile: Profile) -> Iterator[tuple[type[Declaration], str]]:
    """Yield the rules that a profile uses, by kind and last word."""
    for statement in profile.body:
        match statement:
            case PredicateList(names=names):
                yield from ((Predicate, _last(name)) for name in names)
            case ScoreList(scores=scores):
                yield from ((Score, _last(score.name)) for score in scores)
            case AddPredicate(name=name):
                yield Predicate, _last(name)
            case AddScore(name=name):
                yield Score, _last(name)
            case UseQueue(name=name):
                yield Queue, _last(name)
            case UsePreemption(name=name):
                yield Preemption, _last(name)
            case _:
                pass


def _last(name: Name) -> str:
    return name.text.rpartition(".")[2]


def _warning(what: str, name: Name, why: str, fixes: tuple[Fix, ...] = ()) -> Diagnostic:
    title, help_ = f"{what} `{name.text}` is unused", ("use it or remove it",)
    return Diagnostic(LINT.code, title, name.span, why, Severity.WARNING, help=help_, fixes=fixes)


LINT = Lint("K0602", "unused", find, __doc__)
