"""The questions of events to hints, while pods come, change and go."""

from __future__ import annotations

from random import Random

import pytest
from kdsl.base.events import Action, Resource
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.questions import Answers, Kind, Question
from kdsl.hooks.wake import Wake

EVENT = ClusterEvent(Resource.NODE, Action.ADD)
Pods = tuple[PodInfo, ...]


def _pod(value: int) -> PodInfo:
    return PodInfo(f"p{value}", priority=value)


@pytest.mark.parametrize("are_asked_together", [False, True])
def test_the_kinds_are_those_that_are_there(are_asked_together: bool) -> None:
    random, question = Random(1), Question(1)
    kinds: dict[Kind, PodInfo] = {}

    def hint(pod: PodInfo, event: ClusterEvent) -> bool:
        return pod.priority % 3 == 0

    def hints(pods: Pods, event: ClusterEvent) -> list[bool]:
        return [hint(pod, event) for pod in pods]

    wake = Wake(hint=hint, hints=hints if are_asked_together else None)
    for _ in range(3_000):
        value = random.randrange(400)
        kind = (random.choice("ab"), value)
        if kind in kinds and random.random() < 0.6:
            del kinds[kind]
            question.remove(kind)
        elif kind not in kinds:
            kinds[kind] = _pod(value)
            question.add(kind, kinds[kind])
        if random.random() < 0.1:
            known: Answers = {}
            found = question.helped(wake, EVENT, known)
            assert sorted(map(str, found)) == sorted(
                str((each, True)) for each, pod in kinds.items() if hint(pod, EVENT)
            )


def test_the_pods_stay_one_tuple_while_few_come_and_go() -> None:
    seen: list[Pods] = []

    def hints(pods: Pods, event: ClusterEvent) -> list[bool]:
        seen.append(pods)
        return [False] * len(pods)

    wake, question = Wake(hint=lambda pod, event: False, hints=hints), Question(0)
    for value in range(200):
        question.add((value,), _pod(value))
    question.helped(wake, EVENT, {})
    for value in range(5):
        question.remove((value,))
        question.add((1_000 + value,), _pod(1_000 + value))
    for _ in range(2):
        question.helped(wake, EVENT, {})
    first, *later = seen
    assert len(first) == 200
    assert [len(each) for each in later] == [200, 5, 200, 5]
    assert later[0] is first and later[2] is first and later[3] is later[1]


@pytest.mark.parametrize("waiting", [5, 40, 400])
def test_few_pods_that_have_gone_are_asked_about(waiting: int) -> None:
    asked = 0

    def hints(pods: Pods, event: ClusterEvent) -> list[bool]:
        nonlocal asked
        asked += len(pods)
        return [False] * len(pods)

    wake, question = Wake(hint=lambda pod, event: False, hints=hints), Question(0)
    for value in range(2_000):
        question.add((value,), _pod(value))
        if value >= waiting:
            question.remove((value - waiting,))
            asked = 0
            question.helped(wake, EVENT, {})
            assert waiting <= asked <= waiting + waiting // 4 + 9


def test_a_value_that_comes_back_is_asked_about_its_new_pod() -> None:
    question = Question(0)
    asked: list[str] = []

    def hint(pod: PodInfo, event: ClusterEvent) -> bool:
        asked.append(pod.name)
        return True

    question.add(("key",), PodInfo("before"))
    question.remove(("key",))
    question.add(("key",), PodInfo("after"))
    for hints in (None, lambda pods, event: [pod.name == "after" for pod in pods]):
        assert question.helped(Wake(hint=hint, hints=hints), EVENT, {}) == [(("key",), True)]
    assert asked == ["after"]
