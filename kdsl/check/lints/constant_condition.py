"""A condition, or a part of one, is always true or always false, whatever the pod and the node are.

At best it has no effect. At worst it is a mistake that keeps every pod pending, or lets every node pass.

```
require pod.tolerations.size() >= 0
  else "node(s) had taints"
```

Correct the condition, or remove it. A parameter of a rule never counts as constant, because profiles may set
it; a parameter of a file does.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.bounds import Certain, ternary_conditions
from kdsl.check.lints.lint import Lint, Subject, conditions, values
from kdsl.check.model.typed import TypedExpr

_EFFECTS = {
    ("require", True): "no node is rejected here",
    ("require", False): "no node can pass",
    ("applies when", True): "the rule applies anyway",
    ("applies when", False): "the rule never applies",
    ("ignore when", True): "every node gets 0",
    ("ignore when", False): "no node is ignored",
    ("where", True): "nothing is left out",
    ("where", False): "the loop has no turn",
    ("admit when", True): "no pod is kept out here",
    ("admit when", False): "no pod is ever let in",
    ("eligible when", True): "no pod is refused here",
    ("eligible when", False): "no pod ever evicts others",
    ("victim when", True): "every pod may be evicted",
    ("victim when", False): "no pod is ever evicted",
}


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each largest constant part of a condition."""
    for rule in subject.rules.written:
        certain = Certain.of(rule)
        for place, condition in conditions(rule):
            for part, truth in certain.decided(condition):
                is_whole = part is condition
                effect = _EFFECTS[place, truth] if is_whole else "this part decides nothing"
                yield _warning(f"`{place}`" if is_whole else f"a part of `{place}`", part, truth, effect)
        for value in (*values(rule), *(condition for _, condition in conditions(rule))):
            for choice in ternary_conditions(value):
                truth_of_choice = certain.truth(choice)
                if truth_of_choice is not None:
                    effect = "only one of the two values is ever chosen"
                    yield _warning("the condition of `?:`", choice, truth_of_choice, effect)


def _warning(what: str, part: TypedExpr, truth: bool, effect: str) -> Diagnostic:
    title = f"{what} is always {'true' if truth else 'false'}"
    return Diagnostic(LINT.code, title, part.span, effect, Severity.WARNING)


LINT = Lint("K0601", "constant-condition", find, __doc__)
