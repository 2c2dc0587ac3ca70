from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.read.decode import decode, decode_fitting
from kdsl.cluster.read.problems import Problems

POD = {"metadata": {"name": "p", "labels": None}, "spec": {"nodeSelector": {"zone": "a"}}}
MISFIT = {**POD, "spec": {"nodeSelector": {"zone": 3}, "schedulerName": "s"}}


def problems(found: list[Diagnostic]) -> Problems:
    return Problems(found, "pod p")


def test_null_counts_as_absent() -> None:
    found: list[Diagnostic] = []
    pod = decode(POD, Pod, problems(found))
    assert pod is not None and not pod.metadata.labels and not found


def test_an_object_with_a_wrong_type_is_not_decoded_without_it() -> None:
    """A pod without its node selector would be placed anywhere."""
    found: list[Diagnostic] = []
    assert decode(MISFIT, Pod, problems(found)) is None
    assert [each.where for each in found] == ["pod p: spec.nodeSelector.zone"]


def test_the_fitting_part_is_for_further_checks() -> None:
    found: list[Diagnostic] = []
    pod = decode_fitting(MISFIT, Pod, problems(found))
    assert pod is not None and pod.spec.scheduler_name == "s" and not pod.spec.node_selector
    assert [each.where for each in found] == ["pod p: spec.nodeSelector.zone"]
