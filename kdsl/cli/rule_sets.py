"""Rule sets for commands that need rules only, without a cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import has_errors
from kdsl.base.disk_cache import disk_cache
from kdsl.cli.inputs import read_config
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
    from kdsl.configured import check_configured

    checked = check_configured(read_config(config), paths, keep=disk_cache(os.environ), with_trees=with_trees)
    if checked.diagnostics:
        print_diagnostics(checked.diagnostics)
    if checked.rules is None or has_errors(checked.diagnostics):
        sys.exit(2)
    return checked, checked.rules


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
