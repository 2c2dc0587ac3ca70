"""Claims: their class, whether they are bound, and who uses them."""

from __future__ import annotations

import pytest
from kdsl.cluster.api.objects import ObjectMeta
from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.objects.volumes import BETA_CLASS
from kdsl.cluster.storage.claims import BIND_COMPLETED, class_of, is_bound


def annotated(annotations: dict[str, str], **spec: object) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name="c", annotations=annotations),
        spec=type(PersistentVolumeClaim().spec)(**spec),
    )


@pytest.mark.parametrize("volume", ["", "v"])
@pytest.mark.parametrize("is_completed", [False, True])
def test_a_claim_is_bound_that_names_a_volume_and_says_that_binding_is_done(
    volume: str, is_completed: bool
) -> None:
    found = annotated({BIND_COMPLETED: "yes"} if is_completed else {}, volume_name=volume)
    assert is_bound(found) is (bool(volume) and is_completed)


@pytest.mark.parametrize(
    ("annotations", "name", "expected"),
    [
        ({}, None, ""),
        ({}, "fast", "fast"),
        ({BETA_CLASS: "old"}, None, "old"),
        ({BETA_CLASS: "old"}, "fast", "old"),
    ],
)
def test_the_class_of_a_claim(annotations: dict[str, str], name: str | None, expected: str) -> None:
    assert class_of(annotated(annotations, storage_class_name=name)) == expected
