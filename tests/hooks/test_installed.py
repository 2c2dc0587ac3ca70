"""Plugins of installed distributions: found without an import, loaded only when named, contained when
broken.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.installed import installed_plugins, installed_rules, package_folder
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.arguments import args_schema, check_args
from kdsl.hooks.context import PluginContext
from kdsl.hooks.extensions import check_version
from kdsl.hooks.manager import PluginManager
from kdsl.hooks.status import Status

PLUGIN = """
from kdsl.hooks import hookimpl

class Plugin:
    def __init__(self, args, context):
        self.args = args
        if args.get("explode"):
            raise RuntimeError("boom")

    @hookimpl
    def permit(self, pod):
        return self.args
"""
SCHEMA = """{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {"explode": {"type": "boolean"}, "sizes": {"type": "array", "items": {"type": "integer"}}},
  "additionalProperties": false
}"""


class NoBinder:
    def bind(self, pod: Any, node: str) -> Status | None:
        raise AssertionError("nothing is bound here")


CONTEXT = PluginContext(NoBinder(), ManualClock(), WaitingPods[Any]())


class Site:
    """A folder on `sys.path` in which distributions can be installed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def install(self, name: str, *, distribution: str = "", files: Mapping[str, str] | None = None) -> None:
        """Install a distribution whose entry point `name` is `Plugin` in the module `plugin` of a package."""
        distribution = distribution or f"kdsl-{name}"
        package = distribution.replace("-", "_")
        info = self.root / f"{package}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        entry_points = f"[kdsl]\n{name} = {package}.plugin:Plugin\n[kdsl.rules]\n{name} = {package}.rules\n"
        (info / "entry_points.txt").write_text(entry_points)
        contents = {"__init__.py": "", "plugin.py": PLUGIN, "args.schema.json": SCHEMA} | dict(files or {})
        for file, text in contents.items():
            (self.root / package / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / package / file).write_text(text)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield Site(tmp_path)
    for name in set(sys.modules) - before:
        if name.partition(".")[0].startswith("kdsl_"):
            del sys.modules[name]


def load(name: str, **args: Any) -> tuple[Diagnostic, ...]:
    return PluginManager().load(name, args, CONTEXT)


def test_installed_plugins_are_found_without_an_import(site: Site) -> None:
    site.install("here")
    (found,) = (plugin for plugin in installed_plugins() if plugin.name == "here")
    assert (found.distribution, found.version, found.target) == (
        "kdsl-here",
        "1.2",
        "kdsl_here.plugin:Plugin",
    )
    assert "kdsl_here.plugin" not in sys.modules


def test_a_named_plugin_is_built_with_its_arguments(site: Site) -> None:
    site.install("here")
    manager = PluginManager()
    assert manager.load("here", {"sizes": [1, 2]}, CONTEXT) == ()
    entry = manager.get("here")
    assert entry is not None
    assert entry.hooks["permit"]("state", "pod", "node") == {"sizes": [1, 2]}


def test_an_unknown_name_gets_a_suggestion(site: Site) -> None:
    site.install("here")
    (found,) = load("heer")
    assert (found.code, found.title) == ("K1001", "plugin `heer` is not installed")
    assert found.help == ("did you mean `here`?",)


def test_two_distributions_may_not_offer_one_name(site: Site) -> None:
    site.install("here")
    site.install("here", distribution="kdsl-rival")
    (found,) = load("here")
    assert (found.code, found.title) == ("K1011", "plugin `here` is offered by `kdsl-here` and `kdsl-rival`")
    assert found.help == ("uninstall all but one of them",) and not list(check_version("here", ">=9"))


@pytest.mark.parametrize(
    ("files", "args", "code", "title"),
    [
        (
            {"plugin.py": "import no_such_module"},
            {},
            "K1002",
            "plugin `here` cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        (
            {"plugin.py": "raise SystemExit(3)"},
            {},
            "K1002",
            "plugin `here` cannot be imported: SystemExit: 3",
        ),
        (
            {"plugin.py": ""},
            {},
            "K1002",
            "plugin `here` cannot be imported: AttributeError: "
            "module 'kdsl_here.plugin' has no attribute 'Plugin'",
        ),
        (
            {"args.schema.json": "[]"},
            {},
            "K1003",
            "the args.schema.json of plugin `here` cannot be used: it is not an object",
        ),
        (
            {"args.schema.json": '{"type": "list"}'},
            {},
            "K1003",
            "the args.schema.json of plugin `here` cannot be used: "
            "'list' is not valid under any of the given schemas",
        ),
        (
            {"args.schema.json": '{"$ref": "#/nowhere"}'},
            {},
            "K1003",
            "the args.schema.json of plugin `here` cannot be used: "
            "PointerToNowhere: '/nowhere' does not exist within {'$ref': '#/nowhere'}",
        ),
        (
            {},
            {"size": 3},
            "K1004",
            "plugin `here` has no argument `size`",
        ),
        (
            {"args.schema.json": '{"$ref": "#"}'},
            {},
            "K1003",
            "the args.schema.json of plugin `here` cannot be used: it refers to itself without end",
        ),
        (
            {"args.schema.json": "[" * 100_000},
            {},
            "K1003",
            "the args.schema.json of plugin `here` cannot be used: it is nested too deeply",
        ),
        (
            {"plugin.py": "import asyncio\nraise asyncio.CancelledError"},
            {},
            "K1002",
            "plugin `here` cannot be imported: CancelledError",
        ),
        (
            {"plugin.py": "class Plugin:\n  def __init__(self, args, context): raise SystemExit(0)"},
            {},
            "K1005",
            "plugin `here` cannot be built: SystemExit: 0",
        ),
        (
            {"plugin.py": "class Plugin:\n  def __init__(self, args, context): raise GeneratorExit"},
            {},
            "K1005",
            "plugin `here` cannot be built: GeneratorExit",
        ),
        (
            {"plugin.py": "class Plugin:\n  def __init__(self, args): pass"},
            {},
            "K1005",
            "plugin `here` cannot be built",
        ),
        (
            {"plugin.py": "class Plugin:\n  def __new__(cls, args, context): raise SystemExit(0)"},
            {},
            "K1005",
            "plugin `here` cannot be built: SystemExit: 0",
        ),
        (
            {"plugin.py": f"{PLUGIN}\n    def __dir__(self): raise SystemExit(0)"},
            {},
            "K1007",
            "plugin `here` cannot be registered: SystemExit: 0",
        ),
        ({}, {"explode": True}, "K1005", "plugin `here` cannot be built: RuntimeError: boom"),
        (
            {"plugin.py": PLUGIN.replace("def permit", "def allow")},
            {},
            "K1006",
            "plugin `here` implements the unknown hook `allow`",
        ),
    ],
)
def test_a_broken_plugin_is_a_diagnostic(
    site: Site, files: Mapping[str, str], args: dict[str, Any], code: str, title: str
) -> None:
    site.install("here", files=files)
    (found,) = load("here", **args)
    assert (found.code, found.title) == (code, title)
    assert found.where.startswith("plugins.here")


@pytest.mark.parametrize(
    "given",
    [
        "@any_number\n    def __init__(self): pass",
        "def __init__(self, *all): pass",
        "__signature__ = 'broken'\n    def __init__(self, args, context): pass",
        "def __new__(cls, *all, **named): return super().__new__(cls)\n    def __init__(self, args, context): pass",
    ],
)
def test_a_constructor_that_can_be_called_is_not_refused(site: Site, given: str) -> None:
    text = f"""import functools

def any_number(function):
    @functools.wraps(function)
    def call(self, *all): return function(self)
    return call

class Plugin:
    {given}
"""
    site.install("here", files={"plugin.py": text})
    assert [found.code for found in load("here")] == ["K1010"]


def test_a_schema_fetches_nothing(site: Site, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("{}")
    site.install("here", files={"args.schema.json": f'{{"$ref": "{elsewhere.as_uri()}"}}'})
    (found,) = load("here")
    assert found.code == "K1003" and "Unresolvable" in found.title


@pytest.mark.parametrize("target", ["not a module!!", "../../etc:x", "a..b", ":", "json./etc"])
def test_an_entry_point_that_names_nothing(site: Site, target: str) -> None:
    site.install("here")
    points = site.root / "kdsl_here-1.2.dist-info/entry_points.txt"
    points.write_text(f"[kdsl]\nhere = {target}\n[kdsl.rules]\nhere = {target}\n")
    (site.root / "kdsl_here-1.2.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: kdsl-here\n")
    (found,) = load("here")
    assert found.code == "K1002" and found.title.startswith("plugin `here` cannot be imported: ")
    (plugin,) = (each for each in installed_plugins() if each.name == "here")
    assert package_folder(plugin.module) is None
    assert [each.folder for each in installed_rules() if each.name == "here"] == [None]


def test_each_argument_that_does_not_fit_is_told_with_its_place(site: Site) -> None:
    site.install("here")
    assert [(one.where, one.title) for one in load("here", explode=1, sizes=[1, "two"])] == [
        ("plugins.here.explode", "the argument `explode` of plugin `here` must be `true` or `false`"),
        ("plugins.here.sizes[1]", "the argument `sizes[1]` of plugin `here` must be a whole number"),
    ]


def test_a_missing_argument_is_named(site: Site) -> None:
    site.install("here")
    schema = site.root / "kdsl_here" / "args.schema.json"
    schema.write_text(json.dumps({**json.loads(schema.read_text()), "required": ["sizes", "explode"]}))
    assert [(one.where, one.title) for one in load("here", explode=True)] == [
        ("plugins.here", "plugin `here` needs the argument `sizes`")
    ]


def test_a_misspelled_argument_is_not_missing(site: Site) -> None:
    site.install("here")
    schema = site.root / "kdsl_here" / "args.schema.json"
    schema.write_text(json.dumps({**json.loads(schema.read_text()), "required": ["sizes", "explode"]}))
    assert [one.title for one in load("here", szes=[1])] == [
        "plugin `here` needs the argument `explode`",
        "plugin `here` has no argument `szes`",
    ]


def test_without_a_schema_no_arguments_fit(site: Site) -> None:
    site.install("here")
    (site.root / "kdsl_here" / "args.schema.json").unlink()
    assert load("here") == ()
    found = load("here", sizes=[], other=1)
    assert [(one.code, one.title, one.where) for one in found] == [
        ("K1004", f"plugin `here` takes no arguments, such as `{name}`", f"plugins.here.{name}")
        for name in ("sizes", "other")
    ]
    assert "args.schema.json" in found[0].help[0]


def test_an_unknown_argument_is_told_with_the_known_ones(site: Site) -> None:
    site.install("here")
    found = load("here", size=[], other=1)
    assert [(one.title, one.where) for one in found] == [
        (f"plugin `here` has no argument `{name}`", f"plugins.here.{name}") for name in ("size", "other")
    ]
    assert found[0].help == ("did you mean `sizes`?",) and found[1].help[0].startswith("known here: ")


def test_the_schemas_of_kdsl_are_sound_and_take_no_arguments_unless_some_are_required() -> None:
    own = [plugin for plugin in installed_plugins() if plugin.distribution == "kdsl"]
    assert len(own) >= 4
    for plugin in own:
        schema = args_schema(plugin)
        Draft202012Validator.check_schema(schema)
        assert Draft202012Validator(schema).is_valid({}) == ("required" not in schema)
        assert bool(check_args(plugin, {})) == ("required" in schema)


def test_default_plugins_start_without_the_checker_of_schemas() -> None:
    code = "import sys; from kdsl.hooks.arguments import *; from kdsl.base.installed import *; print([check_args(p, {}) for p in installed_plugins()"
    code += " if p.name in ('VolumeBinding', 'default-binder')], 'jsonschema' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[(), ()] False\n"
