"""Plugins that the manager accepts and refuses, with its messages."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.hooks.manager import PluginManager, hook_arguments, hook_names
from kdsl.hooks.specs import hookimpl


class Binds:
    @hookimpl
    def bind(self, state: Any, pod: Any, node: str) -> None:
        """Bind nothing."""


def register(plugin: object) -> tuple[Diagnostic, ...]:
    manager = PluginManager()
    found = manager.register(plugin, "mine")
    assert (manager.get("mine") is None) == any(one.is_error for one in found)
    return found


def test_a_plugin_is_registered_under_its_name() -> None:
    manager = PluginManager()
    assert manager.register(Binds(), "one") == ()
    assert manager.register(Binds(), "two", key="default/two") == ()
    assert manager.registered() == ("one", "default/two")
    entry = manager.get("default/two")
    assert entry is not None
    assert (entry.name, tuple(entry.hooks)) == ("two", ("bind",))


def test_a_hook_may_leave_arguments_out_and_order_them_freely() -> None:
    class Few:
        @hookimpl
        def bind(self, node: str, pod: str) -> tuple[str, str]:
            return node, pod

        @hookimpl
        def pre_filter(self) -> str:
            return "nothing needed"

        @hookimpl
        def reserve(self, node: str) -> str:
            return node

        @hookimpl
        def permit(self, state: str) -> str:
            return state

    manager = PluginManager()
    assert manager.register(Few(), "few") == ()
    entry = manager.get("few")
    assert entry is not None
    assert entry.hooks["bind"]("state", "pod", "node") == ("node", "pod")
    assert entry.hooks["pre_filter"]("state", "pod", "nodes") == "nothing needed"
    assert entry.hooks["reserve"]("state", "pod", "node") == "node"
    assert entry.hooks["permit"]("state", "pod", "node") == "state"


def test_a_full_signature_costs_no_wrapper() -> None:
    manager, plugin = PluginManager(), Binds()
    manager.register(plugin, "one")
    entry = manager.get("one")
    assert entry is not None
    assert entry.hooks["bind"] == plugin.bind


def test_unknown_hooks_are_errors_with_a_suggestion() -> None:
    class Typo:
        @hookimpl
        def pre_fliter(self, pod: Any) -> None: ...

    assert register(Typo()) == (
        Diagnostic(
            "K1006",
            "plugin `mine` implements the unknown hook `pre_fliter`",
            where="plugins.mine",
            help=("did you mean `pre_filter`?",),
        ),
    )


def test_wrong_arguments_are_errors_all_at_once() -> None:
    class Wrong:
        @hookimpl
        def bind(self, pods: Any, node: str = "") -> None: ...

        @hookimpl
        def permit(self, *everything: Any) -> None: ...

    assert [(one.code, one.title) for one in register(Wrong())] == [
        ("K1007", "plugin `mine` declares an argument `pods` that the hook `bind` does not have"),
        (
            "K1007",
            "plugin `mine` declares the argument `node` of hook `bind` as optional or keyword-only",
        ),
        ("K1007", "plugin `mine` declares an argument `everything` that the hook `permit` does not have"),
    ]
    assert register(Wrong())[0].help == ("did you mean `pod`?", "the hook may take `state`, `pod`, `node`")
    assert register(Wrong())[1].help == ("write `node` alone",)


def test_methods_without_self_are_errors() -> None:
    """Else the object would be the first argument of the hook, in the first attempt."""

    class Selfless:
        @hookimpl
        def filter_node(state: Any, pod: Any, node: Any) -> None: ...  # type: ignore[misc]  # noqa: N805

        @hookimpl
        def events() -> None: ...  # type: ignore[misc]

        @staticmethod
        @hookimpl
        def reserve(state: Any, pod: Any) -> None: ...

        @classmethod
        @hookimpl
        def permit(pod) -> None: ...  # type: ignore[no-untyped-def]  # noqa: N804

    assert [(one.code, one.title, one.help) for one in register(Selfless())] == [
        (
            "K1007",
            f"plugin `mine` declares the hook `{hook}` without `{names.split(',')[0]}`",
            (f"write `def {hook}({names})`",),
        )
        for hook, names in (
            ("events", "self"),
            ("filter_node", "self, state, pod, node"),
            ("permit", "cls, pod"),
        )
    ]


def test_wrappers_are_errors() -> None:
    class Wraps:
        @hookimpl(wrapper=True)
        def bind(self) -> Any:
            return (yield)

    (found,) = register(Wraps())
    assert (found.code, found.title) == (
        "K1008",
        "plugin `mine` wraps the hook `bind`, which kdsl does not support",
    )


@pytest.mark.parametrize("option", ["tryfirst", "trylast"])
def test_asking_for_a_place_in_the_order_is_a_warning(option: str) -> None:
    class Eager:
        @hookimpl(**{option: True})
        def bind(self) -> None: ...

    (found,) = register(Eager())
    assert (found.code, found.severity) == ("K1016", Severity.WARNING)


def test_a_plugin_without_hooks_is_an_error() -> None:
    (found,) = register(object())
    assert (found.code, found.help) == ("K1010", ("mark its methods with `kdsl.hooks.hookimpl`",))


def test_a_key_can_be_taken_once_and_the_first_plugin_stays() -> None:
    manager, first = PluginManager(), Binds()
    manager.register(first, "one")
    (found,) = manager.register(Binds(), "one")
    assert (found.code, found.title) == ("K1009", "plugin `one` is registered twice")
    entry = manager.get("one")
    assert entry is not None
    assert entry.hooks["bind"] == first.bind


def test_a_plugin_that_raises_while_it_is_looked_at_is_contained() -> None:
    class Trap:
        @property
        def bind(self) -> Any:
            raise RuntimeError("gotcha")

        @hookimpl
        def permit(self) -> None: ...

        def __dir__(self) -> list[str]:
            raise RuntimeError("gotcha")

    (found,) = register(Trap())
    assert (found.code, found.title) == ("K1007", "plugin `mine` cannot be registered: RuntimeError: gotcha")


def test_specname_names_the_hook() -> None:
    class Renamed:
        @hookimpl(specname="bind")
        def do_bind(self, node: str) -> str:
            return node

    manager = PluginManager()
    assert manager.register(Renamed(), "renamed") == ()
    entry = manager.get("renamed")
    assert entry is not None
    assert entry.hooks["bind"]("state", "pod", "n1") == "n1"


def test_hooks_are_listed_in_the_order_a_pod_meets_them() -> None:
    assert hook_names()[:2] == ("pre_enqueue", "queue_sort")
    assert hook_names()[7] == "pre_filter"
    assert hook_names()[-1] == "post_bind"
    assert hook_arguments("score") == ("state", "pod", "nodes")


def test_hooks_of_one_object_are_not_those_of_its_class() -> None:
    """The attributes of a class are looked at once; those of its objects each time."""

    class Late:
        permit: Any = None

        def __init__(self, reserve: Any = None) -> None:
            if reserve is not None:
                self.reserve = reserve

    class Slotted:
        __slots__ = ("reserve",)

        def __init__(self, reserve: Any) -> None:
            self.reserve = reserve

    @hookimpl
    def reserve(state: Any, pod: Any, node: str) -> None:
        """Reserve nothing."""

    for plugin, hooks in ((Late(), ()), (Late(reserve), ("reserve",)), (Slotted(reserve), ("reserve",))):
        manager = PluginManager()
        manager.register(plugin, "mine")
        entry = manager.get("mine")
        assert (() if entry is None else tuple(entry.hooks)) == hooks
