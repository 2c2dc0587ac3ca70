"""Labels find the selectors that match them, in the order of their addition, as asking each selector would."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selector_index import Selectors
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot.catalog import Catalog

from tests.cluster.snapshot.test_catalog import read

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"), max_size=2)
REQUIREMENTS = st.one_of(
    st.builds(
        LabelRequirement,
        st.sampled_from("ab"),
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.frozensets(st.sampled_from("xyz"), min_size=1, max_size=2),
    ),
    st.builds(
        LabelRequirement, st.sampled_from("ab"), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])
    ),
)
SELECTORS = st.one_of(st.none(), st.builds(LabelSelector, st.frozensets(REQUIREMENTS, max_size=2)))
CHANGES = st.lists(st.tuples(st.sampled_from("123456"), st.one_of(st.just("gone"), SELECTORS)), max_size=20)


@settings(deadline=None)
@given(CHANGES, CHANGES, LABELS)
def test_labels_find_their_selectors(
    changes: list[tuple[str, LabelSelector | str | None]],
    others: list[tuple[str, LabelSelector | str | None]],
    labels: dict[str, str],
) -> None:
    selectors = Selectors()
    naive: dict[str, LabelSelector | None] = {}

    def apply(changes: list[tuple[str, LabelSelector | str | None]]) -> None:
        for key, selector in changes:
            if isinstance(selector, str):
                selectors.drop(key)
                naive.pop(key, None)
            else:
                selectors.put(key, selector)
                naive[key] = selector

    apply(changes)
    wanted = [one for one in naive.values() if one is not None and one.matches(labels)]
    assert selectors.matching(labels) == wanted
    assert len(selectors) == len(naive)
    copy = selectors.copy()
    apply(others)
    assert copy.matching(labels) == wanted


def test_a_copied_catalog_has_its_own_services() -> None:
    catalog = Catalog()
    catalog.put(read("Service", "web", spec={"selector": {"app": "web"}}))
    other = catalog.copy()
    other.remove("Service", "default/web")
    pod = PodInfo("p", labels=FrozenMap({"app": "web"}))
    assert len(catalog.service_selectors(pod)) == 1
    assert other.service_selectors(pod) == []
