"""A signature has the parts of labels and annotations that a rule reads by selectors and at constant keys."""

from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.views.view import load_views
from kdsl.cluster.objects import label_selectors
from kdsl.cluster.objects.label_selectors import LabelSelector, SelectedKeys
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.pod_keys import MAX_MAP_KEYS, PodFact
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.signature_reads import BY_SELECTORS, LABELS, SELECTED_LABELS

from tests.plan.lab import DEFAULT_QUEUE, compile_rules, predicate, score
from tests.plan.memo.test_joined import joined_answers


def test_all_methods_that_read_labels_are_known() -> None:
    def readers(word: str) -> set[str]:
        return {
            f"{view}.{name}"
            for view, declared in load_views().types.items()
            for name, method in declared.methods.items()
            if word in method.reads
        }

    assert readers(LABELS) == BY_SELECTORS
    assert readers("pod.annotations") == set()


@pytest.mark.parametrize(
    "condition",
    [
        "pod.requiredAffinity.exists(t, t.matches(pod))",
        "cluster.services(pod).exists(g, g.includes(pod))",
        "cluster.spreadConstraints(pod, []).all(c, c.selects(pod))",
    ],
)
def test_labels_that_only_selectors_read_are_the_selected_ones(condition: str) -> None:
    plugin = predicate(f'require {condition} || node.unschedulable else "no"')
    assert SELECTED_LABELS in plugin.parts[0].reads
    assert LABELS not in plugin.parts[0].reads


@pytest.mark.parametrize(
    "body",
    [
        'require pod.labels.size() > 0 || node.unschedulable else "no"',
        'require has(pod.labels.a) && pod.labels.size() > 0 || node.unschedulable else "no"',
        'require pod.requiredAffinity.exists(t, t.matches(pod)) && pod.name in pod.labels else "no"',
        'applies when pod.labels.size() > 1\nrequire node.unschedulable else "no"',
        'let own = pod.labels\napplies when own.size() > 0\nrequire node.unschedulable else "no"',
        'require node.unschedulable else "no: ${pod.labels.size()}"',
        'require cluster.pods.exists(p, p.labels == pod.labels) || node.unschedulable else "no"',
    ],
)
def test_labels_that_a_rule_reads_itself_are_all_of_them(body: str) -> None:
    plugin = predicate(body)
    assert LABELS in plugin.parts[0].reads
    assert SELECTED_LABELS not in plugin.parts[0].reads


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('require "a" in pod.labels || node.unschedulable else "no"', "pod.labels[a]"),
        (
            'let own = pod.labels[?"a"]\napplies when own.hasValue()\nrequire node.unschedulable else "no"',
            "pod.labels[a]",
        ),
        (
            'require has(pod.labels.a) && pod.labels.a == "x" || pod.labels[?"b]"].orValue("") == "" else "no"',
            "pod.labels[a] pod.labels[b]]",
        ),
        (
            'require pod.annotations[?"a"].orValue("") == "" || node.unschedulable else "no"',
            "pod.annotations[a]",
        ),
        (
            'require pod.requiredAffinity.exists(t, t.matches(pod)) && "a" in pod.labels else "no"',
            "pod.labels[a] pod.selectedLabels",
        ),
    ],
)
def test_maps_that_are_read_at_constant_keys_are_their_values_there(body: str, words: str) -> None:
    reads = predicate(body).parts[0].reads
    assert {word for word in reads if word.startswith(("pod.l", "pod.a", "pod.s"))} == set(words.split())


@pytest.mark.parametrize("others", ["", "pod.priority", "pod.labels", "pod.selectedLabels pod.annotations"])
def test_a_signature_has_the_value_at_a_key(keys: SelectedKeys, others: str) -> None:
    dependencies = Dependencies.of(frozenset({"pod.labels[team]", *others.split()}))
    assert dependencies is not None
    signature = dependencies.signature
    one, same, other, without = (
        PodInfo("p", labels=FrozenMap({"job": job} | ({"team": team} if team else {})))
        for job, team in (("1", "a"), ("2", "a"), ("1", "b"), ("1", ""))
    )
    assert (signature(one) == signature(same)) is ("pod.labels" not in others.split())
    assert len({signature(one), signature(other), signature(without)}) == 3


@pytest.mark.parametrize("others", ["pod.priority", "pod.labels"])
def test_a_signature_with_the_values_at_many_keys_has_the_whole_map(others: str) -> None:
    words = [f"pod.labels[k{at}]" for at in range(MAX_MAP_KEYS + 1)]
    dependencies = Dependencies.of(frozenset({*words, "pod.annotations[a]", others}))
    assert dependencies is not None
    expected = {PodFact("labels"), PodFact("annotations", "a"), PodFact(others.removeprefix("pod."))}
    assert len(dependencies.pod_facts) == len(expected)
    assert set(dependencies.pod_facts) == expected


def test_pods_that_differ_in_other_labels_share_an_admission() -> None:
    text = """
queue Q {
  order by pod.priority desc
  admit when !("held" in pod.labels) else "held"
}
profile p { scheduler "t" queue Q predicates { P } }
predicate P { require node.unschedulable else "no" }
"""
    queue = compile_rules(text).queue
    for job in "ab":
        assert queue.pre_enqueue(PodInfo(job, labels=FrozenMap({"job": job}))) is None
    assert queue.pre_enqueue(PodInfo("c", labels=FrozenMap({"held": ""}))) is not None
    assert len(queue._admitted) == 2


@pytest.mark.parametrize(
    ("let", "condition"),
    [
        ('"held" in pod.labels', "!own"),
        ("pod.labels", "own.size() == 0"),
        ('pod.annotations[?"held"].orValue("no")', 'own == "no"'),
    ],
)
def test_an_admission_depends_on_the_labels_of_lets(let: str, condition: str) -> None:
    text = f"""
queue Q {{
  let own = {let}
  order by pod.priority desc
  admit when {condition} else "held"
}}
profile p {{ scheduler "t" queue Q predicates {{ P }} }}
predicate P {{ require node.unschedulable else "no" }}
"""
    queue = compile_rules(text).queue
    held = FrozenMap({"held": ""})
    assert queue.pre_enqueue(PodInfo("a")) is None
    assert queue.pre_enqueue(PodInfo("b", labels=held, annotations=held)) is not None


def test_labels_are_followed_into_functions() -> None:
    text = """
fn own(p: Pod): bool = "a" in p.labels
fn selected(p: Pod): bool = p.requiredAffinity.exists(t, t.matches(p))
predicate Own { require own(pod) || node.unschedulable else "no" }
predicate Selected { require selected(pod) || node.unschedulable else "no" }
profile p { scheduler "s" queue Q predicates { Own Selected } }
"""
    own, selected = compile_rules(f"{DEFAULT_QUEUE}{text}").predicates
    assert "pod.labels[a]" in own.parts[0].reads
    assert SELECTED_LABELS in selected.parts[0].reads


def test_a_score_has_the_same_reads() -> None:
    assert SELECTED_LABELS in score("value pod.requiredAffinity.exists(t, t.matches(pod)) ? 1 : 2").reads
    assert LABELS in score("value pod.labels.size()").reads


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> SelectedKeys:
    """Return the selected keys of a process that has seen no selector."""
    keys = SelectedKeys()
    for module in ("label_selectors", "pod"):
        monkeypatch.setattr(f"kdsl.cluster.objects.{module}.SELECTED_KEYS", keys)
    monkeypatch.setattr("kdsl.plan.reads.dependencies.SELECTED_KEYS", keys)
    return keys


def test_a_label_counts_from_the_first_selector_that_names_its_key(keys: SelectedKeys) -> None:
    labels = Dependencies.of(frozenset({SELECTED_LABELS}))
    assert labels is not None
    signature = labels.signature
    one, other = (PodInfo(name, labels=FrozenMap({"job": name, "app": "web"})) for name in "ab")
    assert one.selected_labels == ()
    before = signature(one)
    assert signature(other) == before
    LabelSelector.of_labels({"app": "db"})
    assert one.selected_labels == (("app", "web"),)
    # Its value is of the same kind as before, but it has another meaning.
    assert signature(one) == signature(other) != before
    LabelSelector.of_labels({"job": "c"})
    assert signature(one) != signature(other)


def test_with_too_many_keys_all_labels_count(keys: SelectedKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_selectors, "MAX_KEYS", 2)
    pod = PodInfo("p", labels=FrozenMap({"k0": "", "job": "1"}))
    for number in range(2):
        LabelSelector.of_labels({f"k{number}": ""})
    assert pod.selected_labels == (("k0", ""),)
    for number in range(2, 9):
        LabelSelector.of_labels({f"k{number}": ""})
    assert pod.selected_labels == (("k0", ""), ("job", "1"))
    assert keys.version == 3


def test_a_new_term_rejects_the_pod_that_it_names_and_no_other(keys: SelectedKeys) -> None:
    joined = PredicateMemo(
        [
            predicate(
                "let existing = cluster.requiredAntiAffinityTerms.count(t, t.matches(pod))\n"
                'require existing.here(node) == 0 else "no"'
            )
        ]
    )
    cache = ClusterCache()
    cache.add_node(NodeFacts("n", labels=FrozenMap({"zone": "z"})))
    pods = [PodInfo(name, labels=FrozenMap({"job": name})) for name in "abc"]

    def rejected() -> str:
        nodes = NodeSet.all(cache.snapshot())
        answers = [joined_answers(joined, pod, nodes)[1] for pod in (*pods, *pods)]
        assert answers[:3] == answers[3:]
        return "".join(pod.name for pod, (status,) in zip(pods, answers, strict=False) if status)

    assert rejected() == ""
    term = PodAffinityTerm("zone", 0, LabelSelector.of_labels({"job": "b"}), frozenset({"default"}), None)
    cache.add_pod(PodInfo("q", node_name="n", required_anti_affinity=(term,)))
    assert rejected() == "b"
