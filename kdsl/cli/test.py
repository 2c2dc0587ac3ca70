"""`kdsl test`: run the tests of rules."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import SEED, GivenPath, config_option, read_config, traceback_option
from kdsl.cli.output import emit, print_diagnostics, print_document


@click.command("test", epilog=examples_of("test"))
@click.argument("paths", nargs=-1, type=GivenPath())
@config_option
@click.option("-k", "word", default="", metavar="WORD", help="Run the cases with WORD in their name or file.")
@click.option(
    "--seed", type=SEED, default=0, show_default=True, help="Seed of the generated inputs of properties."
)
@click.option(
    "--rules",
    multiple=True,
    type=GivenPath(),
    metavar="DIR",
    help="Rule files to test, instead of those that the test files name.",
)
@click.option(
    "-o",
    "--output",
    "--format",
    "style",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="The form of the result.",
)
@click.option(
    "--cover",
    is_flag=False,
    flag_value="0",
    metavar="[=PERCENT]",
    help="List conditions that were never true or never false; fail below PERCENT.",
)
@click.option(
    "--mutate",
    is_flag=False,
    flag_value="0",
    metavar="[=PERCENT]",
    help="Put mistakes into the rules and list those that no case notices; fail below PERCENT.",
)
@traceback_option
@click.option("-v", "--verbose", is_flag=True, help="List the cases that pass as well.")
def command(
    paths: tuple[Path, ...],
    config: Path | None,
    word: str,
    seed: int,
    rules: tuple[Path, ...],
    style: str,
    cover: str | None,
    mutate: str | None,
    traceback: bool,
    verbose: bool,
) -> None:
    """Run rule tests. PATHS are files and folders (default: this folder).

    Tests are files whose names end in `.test.yaml` or `_test.yaml`. Only the plugins of --config are used.

    Exits with 1 if a case fails or a threshold of --cover or --mutate is missed, with 2 if a test file or the
    rules have errors, or if there is no test.
    """
    from kdsl.configured import configured
    from kdsl.report.progress import progress
    from kdsl.testing.coverage import coverage_document, coverage_text
    from kdsl.testing.mutants import mutants_document, mutants_of, mutants_text, run_mutants
    from kdsl.testing.render import results_document, results_junit, results_text
    from kdsl.testing.subject import Library
    from kdsl.testing.suite import coverage_of, files_under_test, read_suite, run_suite

    percent, paths = _threshold("--cover", cover, paths)
    wanted, paths = _threshold("--mutate", mutate, paths)
    suite = read_suite(paths or (Path(),), rules, Library(configured(read_config(config))))
    if suite.diagnostics:
        print_diagnostics(suite.diagnostics)
    if suite.is_broken:
        sys.exit(2)
    chosen = suite.selected(word)
    if not len(chosen):
        emit(f"error: no case has `{word}` in its name or file", to_stderr=True)
        sys.exit(2)
    coverage = None if percent is None else coverage_of(suite)
    results = run_suite(chosen, seed, coverage)
    passed = all(result.passed for result in results)
    mutants = None
    if wanted is not None and passed:
        files = files_under_test(suite)
        with progress("mutants", sum(1 for _ in mutants_of(files))) as advance:
            mutants = run_mutants(chosen.tests, files, seed, advance)
    if style == "json":
        document = results_document(results, seed)
        if coverage is not None:
            document["coverage"] = coverage_document(coverage)
        if mutants is not None:
            document["mutation"] = mutants_document(mutants)
        print_document(document, "json")
    else:
        emit(
            results_junit(results).rstrip() if style == "junit" else results_text(results, verbose, traceback)
        )
        if coverage is not None:
            emit(coverage_text(coverage), to_stderr=style == "junit")
        if mutants is not None:
            emit(mutants_text(mutants), to_stderr=style == "junit")
    if coverage is not None and percent is not None and coverage.percent < percent:
        emit(f"error: less than {percent:g}% of the outcomes of conditions were seen", to_stderr=True)
        passed = False
    if wanted is not None and mutants is None:
        emit("error: no mutant was tried, since cases fail", to_stderr=True)
    if mutants is not None and wanted is not None and mutants.percent < wanted:
        emit(f"error: less than {wanted:g}% of the mutants were noticed", to_stderr=True)
        passed = False
    if not passed:
        sys.exit(1)


def _threshold(
    option: str, given: str | None, paths: tuple[Path, ...]
) -> tuple[float | None, tuple[Path, ...]]:
    """Read the percentage of an option; a path behind an option without one is given back."""
    if given is None:
        return None, paths
    try:
        percent = float(given)
    except ValueError:
        if not Path(given).exists():
            reason = f"`{given}` is neither a percentage nor a file or folder"
            raise click.BadParameter(reason, param_hint=option) from None
        return 0.0, (Path(given), *paths)
    if not 0 <= percent <= 100:
        raise click.BadParameter("a percentage is 0 to 100", param_hint=option)
    return percent, paths
