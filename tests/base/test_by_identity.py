"""Values by the identity of objects."""

from __future__ import annotations

from kdsl.base.by_identity import ByTuple


def test_tuples_are_forgotten_by_the_number_of_their_items() -> None:
    made: list[int] = []

    def make(key: tuple[int, ...]) -> int:
        made.append(len(key))
        return len(key)

    values = ByTuple[int, int](make, 10)
    few = [tuple(range(at, at + 2)) for at in range(4)]
    for _ in range(3):
        assert [values.of(each) for each in few] == [2] * 4
    assert made == [2] * 4
    large = tuple(range(9))
    for _ in range(2):
        assert values.of(large) == 9
    assert values.of(few[0]) == 2
    # An equal tuple is another one.
    assert values.of((*large,)) == 9
    assert made == [2] * 4 + [9, 2, 9]
