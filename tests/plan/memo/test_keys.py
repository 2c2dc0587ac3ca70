"""Rules that read labels and annotations in any form: a kept answer equals a fresh one."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.plan.memo.predicates import PredicateMemo

from tests.plan.lab import DEFAULT_QUEUE, compiler
from tests.plan.memo.test_joined import joined_answers, one_by_one

FUNCTIONS = """
fn at(m: map(string, string), key: string): string = m[?key].orValue("")
fn first(p: Pod): string = p.labels[?"a"].orValue(second(p))
fn second(p: Pod): string = has(p.annotations.b) ? p.annotations.b : p.labels[?"a"].orValue("") + "b"
"""
TEXTS = st.builds(
    lambda text, table: text.replace("MAP", table),
    st.sampled_from(
        [
            *('MAP[?"a"].orValue("")', 'MAP.?b.orValue("a")', '("a" in MAP ? MAP["a"] : "b")', "first(POD)"),
            *('MAP[?MAP[?"a"].orValue("b")].orValue("")', 'at(MAP, "b")', "MAP.map(k, k).join()"),
            *('["a", "b"].map(k, MAP[?k].orValue("")).join("-")', '(has(MAP.b) ? MAP.b : "")', '"b"'),
            *('optional.of(POD).value().labels[?"b"].orValue("")', "string(MAP.size())"),
        ]
    ),
    st.sampled_from(["POD.labels", "POD.annotations", "POD.metadata.labels"]),
)


def of(pod: str) -> st.SearchStrategy[str]:
    """Texts from the maps of a pod."""
    return TEXTS.map(lambda text: text.replace("POD", pod))


CONDITIONS = st.builds(
    str.format,
    st.sampled_from(
        [
            *("{0} == {1}", "node.name == {0}", "node.labels[?{0}].hasValue()", "own == {0}"),
            "node.pods.exists(p, {2} == {0})",
            'topology("k").count(p, {2} == {0}).here(node) < 2',
            "cluster.nodes.exists(n, n.name != {0} && n.labels[?{1}].hasValue())",
        ]
    ),
    *(of("pod"), of("pod"), of("p")),
)
RULES = st.builds(
    'let own = {}\napplies when {}\nrequire {} || node.unschedulable else "not ${{{}}}"\n'.format,
    *(of("pod"), st.sampled_from(["true", 'own != "a"', '"a" in pod.labels'])),
    *(CONDITIONS, st.sampled_from(["first(pod)", "own", "node.name"])),
)
VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("abx"), max_size=3).map(FrozenMap)
PODS = st.builds(
    PodInfo,
    *(st.sampled_from(["p1", "p2"]),),
    labels=VALUES,
    annotations=VALUES,
    node_name=st.sampled_from(["a", "b"]),
)


def alike(pod: PodInfo) -> Iterator[PodInfo]:
    """Yield a pod twice, then pods that differ in one value of its maps."""
    yield from (pod, pod)
    for name in ("labels", "annotations"):
        entries = getattr(pod, name).entries
        for key in "abc":
            yield pod.with_fields(**{name: FrozenMap({**entries, key: "x"})})
            yield pod.with_fields(
                **{name: FrozenMap({each: entries[each] for each in entries if each != key})}
            )


@settings(deadline=None, max_examples=30)
@given(st.lists(RULES, min_size=1, max_size=2), st.lists(st.tuples(PODS, PODS), min_size=2, max_size=3))
def test_pods_of_one_signature_have_the_answers_of_their_own(
    bodies: list[str], steps: list[tuple[PodInfo, PodInfo]]
) -> None:
    names = [f"P{at}" for at in range(len(bodies))]
    text = "".join(f"predicate {name} {{\n{body}}}\n" for name, body in zip(names, bodies, strict=True))
    profile = f'profile p {{ scheduler "t" queue Q predicates {{ {" ".join(names)} }} }}'
    compiled = compiler(f"{FUNCTIONS}{text}{DEFAULT_QUEUE}\n{profile}")
    warm, cache = PredicateMemo(compiled().predicates), ClusterCache()
    for name in "ab":
        cache.add_node(NodeFacts(name, labels=FrozenMap({"k": name, name: ""})))
    for placed, pod in steps:
        cache.add_pod(placed)
        nodes = NodeSet.all(cache.snapshot())
        for each in alike(pod):
            assert joined_answers(warm, each, nodes) == one_by_one(compiled().predicates, each, nodes)
