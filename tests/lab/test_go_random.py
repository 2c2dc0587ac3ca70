"""The generator draws what Go's `math/rand` draws; the numbers are those that programs in Go print."""

from __future__ import annotations

from kdsl.lab.go_random import GoRandom, _table


def test_the_table_is_that_of_go() -> None:
    # The first words of rngCooked in Go's source, as signed numbers.
    signed = [word - 2**64 if word >> 63 else word for word in _table()[:3]]
    assert signed == [-4181792142133755926, -4576982950128230565, 1395769623340756751]


def test_numbers_of_seed_1() -> None:
    assert GoRandom(1).int63() == 5577006791947779410
    random = GoRandom(1)
    assert [random.intn(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]


def test_doubles_of_seed_1() -> None:
    random = GoRandom(1)
    assert [random.float64() for _ in range(2)] == [0.6046602879796196, 0.9405090880450124]


def test_permutations_hold_each_number_once() -> None:
    random = GoRandom(42)
    assert sorted(random.perm(100)) == list(range(100))
    assert sorted(random.shuffled(list(range(1000)))) == list(range(1000))


def test_equal_seeds_draw_equally_and_others_do_not() -> None:
    assert GoRandom(7).perm(20) == GoRandom(7).perm(20) != GoRandom(8).perm(20)
    assert GoRandom(0).int63() == GoRandom(89482311).int63()
