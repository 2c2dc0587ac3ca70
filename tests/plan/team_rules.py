"""Rule files of a platform and its teams as texts, for the tests of teams."""

from __future__ import annotations

from collections.abc import Mapping

from kdsl.base.span import Source
from kdsl.check.checker import CheckResult, check_program
from kdsl.lang.loader import load_sources

PLATFORM = """
queue Q { order by pod.queuedAt }
predicate Small { param limit = 5 require node.podCount < limit else "full" }
mandatory predicate Real { require node.name != "" else "no node" }
score Low { param factor = 1 value factor }
profile base {
  scheduler "default-scheduler"
  queue Q
  predicates { Small Real }
  scores { Low weight 1 }
}
profile packed extends base { scheduler "packed" }
"""


def check_files(files: Mapping[str, str]) -> CheckResult:
    """Check declarations by path; a folder is a package, and packages of teams import the platform's."""
    sources = []
    for path, text in files.items():
        package = path.rpartition("/")[0].replace("/", ".")
        header = f"kdsl 1\npackage {package}\n" + ("import platform\n" if package != "platform" else "")
        sources.append(Source(path, header + text))
    loaded = load_sources(sources)
    assert not loaded.diagnostics, [diagnostic.title for diagnostic in loaded.diagnostics]
    return check_program(loaded.program)
