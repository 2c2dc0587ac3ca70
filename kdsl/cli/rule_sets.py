"""Rule sets for commands that need rules only, without a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import has_errors
from kdsl.base.disk_cache import disk_cache
from kdsl.cli.inputs import load_given
from kdsl.cli.output import print_diagnostics

if TYPE_CHECKING:
    from kdsl.app import Settings
    from kdsl.check.model.rule_set import RuleSet
    from kdsl.hooks.table import HookTable
    from kdsl.rulebook.answer import CheckedRules


def read_rule_set(
    paths: tuple[Path, ...], config: Path | None = None, with_trees: bool = False
) -> tuple[CheckedRules, RuleSet]:
    """Read and check rules with the plugins of a configuration; errors exit with code 2.

    Without `paths` the rules are those of the configuration, or the shipped ones. Their syntax trees are read
    only `with_trees`.
    """
    return read_rule_sets((paths,), config, with_trees)[0]


def read_rule_sets(
    versions: Sequence[tuple[Path, ...]], config: Path | None, with_trees: bool
) -> list[tuple[CheckedRules, RuleSet]]:
    """Read several rule sets with one configuration; the mistakes of all of them are reported together."""
    from kdsl.configured import check_configured

    loaded, keep = load_given(config), disk_cache(os.environ)
    found = list(loaded.diagnostics)
    read: list[tuple[CheckedRules, RuleSet]] = []
    readable = loaded.readable if loaded.names_rules else None
    for paths in versions:
        if readable is None:
            break
        checked = check_configured(readable, paths, keep=keep, with_trees=with_trees)
        found += checked.diagnostics
        if checked.rules is not None and not has_errors(checked.diagnostics):
            read.append((checked, checked.rules))
    if found:
        # Two versions may share a file, and their configuration.
        places = {(each.code, each.title, each.where, str(each.span)): each for each in found}
        print_diagnostics(places.values())
    if loaded.configuration is None or len(read) < len(versions):
        sys.exit(2)
    return read


def idle_tables(rules: RuleSet, settings: Settings) -> tuple[HookTable, ...]:
    """Return the hook tables of rules, for the facts about them: nothing is decided or bound."""
    from kdsl.app import hook_tables
    from kdsl.base.clock import SystemClock
    from kdsl.cycle.waiting import WaitingPods
    from kdsl.hooks.context import PluginContext

    return hook_tables(rules, PluginContext(_NoBinder(), SystemClock(), WaitingPods()), settings)


class _NoBinder:
    """A binder that is never called: nothing is decided."""

    def bind(self, pod: object, node: str) -> None:
        raise RuntimeError("nothing is bound here")
