"""`sample`: what it sees, what it must be, and which one of several a profile has."""

from __future__ import annotations

import pytest
from kdsl.check.analyses.changes import compare_profiles
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedProfile

from tests.check.programs import check, findings, rules_of

_QUEUE = "queue Q { order by pod.priority }\n"


def profiles(text: str) -> dict[str, CheckedProfile]:
    return {profile.name: profile for profile in rules_of(check(_QUEUE + text)).profiles.values()}


def test_the_nearest_sample_holds() -> None:
    found = profiles("""
      fn half(nodes: int): int = nodes / 2
      profile base { scheduler "a" queue Q sample half(nodes) + percentageOfNodesToScore }
      profile heir extends base { scheduler "b" }
      profile other extends base { scheduler "c" sample 3 }
      profile silent { scheduler "d" queue Q }
    """)
    texts = {name: each.sample and each.sample.count.span.text for name, each in found.items()}
    assert texts == {
        "base": "half(nodes) + percentageOfNodesToScore",
        "heir": "half(nodes) + percentageOfNodesToScore",
        "other": "3",
        "silent": None,
    }


@pytest.mark.parametrize(
    ("body", "code", "marked"),
    [
        ("sample nodes > 3", CheckCode.WRONG_TYPE, "nodes > 3"),
        ("sample double(nodes)", CheckCode.WRONG_TYPE, "double(nodes)"),
        ("sample node.podCount", CheckCode.NOT_HERE, "node"),
        ("sample pod.priority", CheckCode.NOT_HERE, "pod"),
        ("sample cluster.nodeCount", CheckCode.NOT_HERE, "cluster"),
        ("sample nodse", CheckCode.UNKNOWN_NAME, "nodse"),
        ("sample 1 sample 2", CheckCode.WRITTEN_TWICE, "sample 2"),
        ("sample 0", CheckCode.SAMPLE_RANGE, "0"),
        ("sample -1", CheckCode.SAMPLE_RANGE, "-1"),
        ("sample nodes > 9 ? 2 - 2 : -5", CheckCode.SAMPLE_RANGE, "nodes > 9 ? 2 - 2 : -5"),
    ],
)
def test_mistakes(body: str, code: CheckCode, marked: str) -> None:
    text = f'{_QUEUE}profile p {{ scheduler "a" queue Q {body} }}'
    assert findings(text) == [(code, marked)]


def test_a_changed_sample_is_a_change() -> None:
    found = profiles("""
      profile a { scheduler "a" queue Q sample nodes / 2 }
      profile b extends a { scheduler "b" sample nodes }
      profile c { scheduler "c" queue Q }
    """)
    for old, new, texts in (("a", "b", ("nodes / 2", "nodes")), ("b", "c", ("nodes", ""))):
        changes = {each.what: (each.before, each.after) for each in compare_profiles(found[old], found[new])}
        assert changes["sample"] == texts
