"""Runs a sample of mutants: `python -m tests.mutants --seed 1 --count 40 [--package cycle] [--at-least 85]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random

import click

from tests.mutants.choice import NEIGHBOURS, Imports
from tests.mutants.judged import Change, read_equivalent
from tests.mutants.operators import Mutant, all_parse, mutants_of
from tests.mutants.tree import CHECKOUT, LIVING, Tree, Trial, copied_tree

PACKAGES = tuple(NEIGHBOURS)


@dataclass(frozen=True, slots=True)
class Rate:
    """How many mutants there were, how many were noticed, and how many make no difference."""

    count: int
    killed: int
    equivalent: int

    @property
    def plain(self) -> float:
        return 100 * self.killed / self.count if self.count else 0.0

    @property
    def judged(self) -> float:
        """The rate without the mutants that make no difference."""
        different = self.count - self.equivalent
        return 100 * self.killed / different if different else 0.0


@cache
def mutants_in(package: str) -> tuple[Mutant, ...]:
    """Return all mutants of a package."""
    return tuple(
        mutant
        for file in sorted((CHECKOUT / "kdsl" / package).rglob("*.py"))
        for mutant in mutants_of(str(file.relative_to(CHECKOUT)), file.read_bytes())
    )


def sample(package: str, seed: int, count: int) -> list[Mutant]:
    """Draw mutants of a package: the same for the same seed and source."""
    everyone = list(mutants_in(package))
    Random(f"{seed}/{package}").shuffle(everyone)
    chosen: list[Mutant] = []
    for mutant in everyone:
        if len(chosen) == count:
            break
        chosen.extend(all_parse((mutant,), (CHECKOUT / mutant.path).read_bytes()))
    return chosen


def change_of(mutant: Mutant) -> Change:
    return Change.of(mutant, (CHECKOUT / mutant.path).read_bytes())


def rate_of(trials: Iterable[Trial], equivalent: Iterable[Change]) -> Rate:
    """Return the rate of some trials. A killed mutant is none that makes no difference, whoever says so."""
    known, found = set(equivalent), list(trials)
    left = [trial for trial in found if trial.verdict in LIVING]
    alike = sum(change_of(trial.mutant) in known for trial in left)
    return Rate(len(found), len(found) - len(left), alike)


def run_package(tree: Tree, imports: Imports, mutants: list[Mutant], files: int) -> list[Trial]:
    """Try the mutants one after the other and print those that live."""
    equivalent = read_equivalent()
    trials: list[Trial] = []
    for number, mutant in enumerate(mutants, start=1):
        change = change_of(mutant)
        # That a change makes no difference is believed once the nearest tests say so, too.
        most = 1 if change in equivalent else None
        trial = tree.judge(mutant, islice(imports.stages(mutant, files), most))
        trials.append(trial)
        print(
            f"{number}/{len(mutants)} {mutant.path}:{mutant.line} {mutant.kind}: {trial.verdict}",
            file=sys.stderr,
        )
        if trial.verdict in LIVING:
            reason = equivalent.get(change)
            judged = f" (makes no difference: {reason})" if reason else ""
            print(f"{mutant.path}:{mutant.line} {mutant.kind} {trial.verdict}{judged}")
            print(change.diff(), flush=True)
    return trials


def table(rates: dict[str, Rate]) -> str:
    """Return a line per package."""
    lines = [f"{'package':<8}  mutants  killed  rate    no difference  rate without"]
    for package, rate in rates.items():
        lines.append(
            f"{package:<8}  {rate.count:>7}  {rate.killed:>6}  {rate.plain:>5.1f}%  {rate.equivalent:>13}"
            f"  {rate.judged:>11.1f}%"
        )
    return "\n".join(lines)


@click.command()
@click.option("--seed", default=1, show_default=True, help="Draws the mutants.")
@click.option("--count", default=40, show_default=True, help="How many mutants of each package.")
@click.option("--package", "packages", type=click.Choice(PACKAGES), multiple=True, help="All by default.")
@click.option("--files", default=8, show_default=True, help="How many test files are asked first.")
@click.option("--at-least", default=85.0, show_default=True, help="The lowest rate, in percent.")
def main(seed: int, count: int, packages: tuple[str, ...], files: int, at_least: float) -> None:
    """Break kdsl COUNT times in each package and tell what no test notices."""
    rates: dict[str, Rate] = {}
    trials: list[Trial] = []
    imports = Imports.of(CHECKOUT)
    with copied_tree() as tree:
        for package in packages or PACKAGES:
            found = run_package(tree, imports, sample(package, seed, count), files)
            rates[package] = rate_of(found, read_equivalent())
            trials += found
        killers = sorted({trial.killer for trial in trials if "::" in trial.killer})
        unsound = tree.failing(killers, 3600) if killers else []
    print(f"\n{table(rates)}")
    for name in unsound:
        print(f"fails where nothing is broken, so that its kills do not count: {name}")
    sys.exit(1 if unsound or any(rate.judged < at_least for rate in rates.values()) else 0)


if __name__ == "__main__":
    main()
