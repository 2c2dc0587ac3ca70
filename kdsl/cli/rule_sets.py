"""Rule sets for the commands that look at rules alone, without a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import has_errors
from kdsl.cli.output import print_diagnostics

if TYPE_CHECKING:
    from kdsl.app import CheckedRules
    from kdsl.check.model import RuleSet


def read_rule_set(paths: tuple[Path, ...]) -> tuple[CheckedRules, RuleSet]:
    """Read and check rules (default: the shipped ones); broken ones end the command with exit code 2."""
    from kdsl.app import check_rules, shipped_rules

    checked = check_rules(paths or (shipped_rules(),))
    if checked.diagnostics:
        print_diagnostics(checked.diagnostics, to_stderr=True)
    if checked.rules is None or has_errors(checked.diagnostics):
        sys.exit(2)
    return checked, checked.rules
