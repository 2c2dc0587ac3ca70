"""`sample N`: how many feasible nodes a profile chooses from.

The checker makes them, `profiles/inheritance.py` attaches them.
"""

from __future__ import annotations

from collections.abc import Callable

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedSample
from kdsl.check.model.types import INT
from kdsl.check.names.declarations import Located
from kdsl.check.rules.block import BlockCheck
from kdsl.check.rules.ranges import range_of
from kdsl.lang.profile_tree import SampleSize
from kdsl.lang.tree import Profile


def check_sample(located: Located[Profile], new_block: Callable[[Span], BlockCheck]) -> CheckedSample | None:
    """Check the `sample` of a profile, None where it has none itself; `check_repeats` reports a second."""
    written = [each for each in located.declaration.body if isinstance(each, SampleSize)]
    if not written:
        return None
    block = new_block(written[-1].span)
    count = block.expression(written[-1].count, INT, "the number of feasible nodes")
    if count.type == INT and range_of(count, {})[1] < 1:
        block.diagnostics.append(_too_few(count.span))
    return CheckedSample(count, block.scope, block.frame.size, written[-1].span)


def _too_few(span: Span) -> Diagnostic:
    title, why = "`sample` must be 1 or more", "a search ends with at least one feasible node"
    help_ = (
        "leave `sample` out to find all feasible nodes",
        "kube-scheduler's 0 adapts to the number of nodes: `extends kubernetes.default`, or"
        " `sample kubernetes.enoughNodes(nodes, 0)`",
    )
    return Diagnostic(CheckCode.SAMPLE_RANGE, title, span, why, help=help_)
