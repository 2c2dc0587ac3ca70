"""Rule sets for the commands that look at rules alone, without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import has_errors
from kdsl.cli.output import print_diagnostics

if TYPE_CHECKING:
    from collections.abc import Collection

    from kdsl.app import CheckedRules
    from kdsl.check.model import RuleSet


def read_rule_set(
    paths: tuple[Path, ...], plugins: Collection[str] | None = None
) -> tuple[CheckedRules, RuleSet]:
    """Read and check rules; broken ones end the command with exit code 2.

    Without `paths` they are the shipped ones, without `plugins` the default ones are active.
    """
    from kdsl.app import DEFAULT_PLUGINS, check_rules, shipped_rules

    checked = check_rules(paths or (shipped_rules(),), DEFAULT_PLUGINS if plugins is None else plugins)
    if checked.diagnostics:
        print_diagnostics(checked.diagnostics, to_stderr=True)
    if checked.rules is None or has_errors(checked.diagnostics):
        sys.exit(2)
    return checked, checked.rules
