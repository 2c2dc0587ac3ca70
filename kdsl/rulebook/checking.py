"""Checked rules of rule files: those of an earlier run, where the cache has them, else new ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from kdsl.base.disk_cache import DiskCache
from kdsl.base.garbage import growing_heap
from kdsl.lang.discovery import NO_DRAFTS, Drafts
from kdsl.rulebook.answer import CheckedRules
from kdsl.rulebook.answer_cache import kept_answer
from kdsl.rulebook.texts import DEFAULT_PLUGINS, RuleTexts, read_texts


def check_rules(
    paths: Sequence[Path | str],
    plugins: Collection[str] = DEFAULT_PLUGINS.keys(),
    undeclared: Collection[str] = (),
    drafts: Drafts = NO_DRAFTS,
    keep: DiskCache | None = None,
    with_trees: bool = False,
) -> CheckedRules:
    """Load and check the rule files of `paths`, which may use declarations of the active `plugins`.

    Imported packages that are missing there come from the libraries. Plugins in `undeclared` may provide
    functions without declared reads. The answer is stored in the cache `keep`, and read from there: its
    syntax trees only `with_trees`.
    """
    return check_texts(read_texts(paths, drafts), plugins, undeclared, keep, with_trees)


@growing_heap()
def check_texts(
    texts: RuleTexts,
    plugins: Collection[str] = DEFAULT_PLUGINS.keys(),
    undeclared: Collection[str] = (),
    keep: DiskCache | None = None,
    with_trees: bool = False,
) -> CheckedRules:
    """Check rule files already read: see `check_rules`."""
    answer = kept_answer(keep, texts, plugins, undeclared)
    checked = answer.rules(with_trees)
    if checked is None:
        # The checker and the parser take as long to import as all that runs kept rules.
        from kdsl.rulebook.fresh import check_fresh

        checked = check_fresh(texts, plugins, undeclared)
        answer.write(checked)
    return checked


def check_text(path: Path, text: str) -> CheckedRules:
    """Check a rule file that is not written yet as if it were at `path`, alone with the libraries."""
    return check_rules((path,), drafts={path: text.encode()})
