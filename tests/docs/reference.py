"""Write `docs/reference.md`, all that expressions can read and call, from the data: `python -m tests.docs.reference`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kdsl.check.library import LIBRARY
from kdsl.check.library.declaration import Overload
from kdsl.check.model.types import Type
from kdsl.check.views.view import Field, View, Views, load_views

FILE = Path(__file__).parents[2] / "docs/reference.md"
_INTRO = """# Reference

The fields that expressions can read and the functions that they can call. `python -m tests.docs.reference` writes this
page from the data. `path` is the place of a field in the Kubernetes API: `pod.metadata.labels` is `pod.labels`. Fields
marked † may be missing: `has` tests them, and a missing one reads as its empty value.
"""


def reference(views: Views) -> str:
    """Return the page."""
    lines = [_INTRO, "## Names in scope", "", "| in | names |", "|---|---|"]
    for kind, names in views.scopes.items():
        lines.append(f"| {kind} | {', '.join(f'`{name}`: {type_}' for name, type_ in names.items())} |")
    lines += ["", "## Views"]
    for view in views.types.values():
        lines += ["", *_view(view, views)]
    lines += ["", "## Functions that make views", "", "| function | is |", "|---|---|"]
    for name, made in views.functions.items():
        lines.append(_row(f"`{name}({_types(made.args)})`: {made.result}", made.doc))
    lines += ["", "## Functions and operators", "", "| function | forms | is |", "|---|---|---|"]
    for function in sorted(LIBRARY.values(), key=lambda each: each.name):
        forms = ", ".join(f"`{_form(each)}`" for each in function.overloads)
        lines.append(_row(f"`{function.name}`", forms, function.doc))
    return "\n".join(lines) + "\n"


def _view(view: View, views: Views) -> Iterator[str]:
    yield f"### {view.name}"
    base = views.types[view.base] if view.base else None
    if base is not None:
        yield f"\nAll that `{base.name}` has."
    fields = [each for name, each in view.fields.items() if base is None or name not in base.fields]
    if fields:
        paths = {
            each.name: path.removeprefix(f"{view.name}.")
            for path, each in views.paths.items()
            if isinstance(each, Field) and path.startswith(f"{view.name}.")
        }
        yield "\n| field | type | path | is |\n|---|---|---|---|"
        for field in fields:
            mark = " †" if field.optional else ""
            path = paths.get(field.name, "")
            doc = "" if field.doc == path else field.doc
            yield _row(f"`{field.name}`{mark}", str(field.type), f"`{path}`" if path else "", doc)
    methods = [each for name, each in view.methods.items() if base is None or name not in base.methods]
    macros = [each for name, each in view.macros.items() if base is None or name not in base.macros]
    if methods or macros:
        yield "\n| method | is |\n|---|---|"
    for method in methods:
        yield _row(f"`{method.name}({_types(method.args)})`: {method.result}", method.doc)
    for macro in macros:
        yield _row(f"`{macro.name}(v, {macro.body})`: {macro.result}", macro.doc)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _form(overload: Overload) -> str:
    args = overload.args[1:] if overload.member else overload.args
    target = f"{_plain(overload.args[0])}." if overload.member else ""
    dots = "…" if overload.variadic else ""
    return f"{target}({_types(args)}{dots}): {_plain(overload.result)}"


def _types(types: tuple[Type, ...]) -> str:
    return ", ".join(map(_plain, types))


def _plain(type_: Type) -> str:
    return str(type_).replace("'", "")


if __name__ == "__main__":
    FILE.write_text(reference(load_views()), encoding="utf-8")
