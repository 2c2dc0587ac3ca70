"""A copy of the checkout in which code may be broken, and runs of tests in it. The checkout is never touched."""

from __future__ import annotations

import compileall
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path

from tests import conformance
from tests.mutants.choice import Stage
from tests.mutants.operators import Mutant

CHECKOUT = Path(__file__).parents[2]
IDLE_SECONDS = 1800.0
"""How long a run may last by the clock: on a busy machine much longer than it computes."""
MEMORY = 4 << 30
"""The most memory that a run may take, in bytes: a mutant may never stop to collect."""
_COPIED = ("kdsl", "plugins", "rules", "tests", "examples", "docs")
_NO_TESTS = 5
_PYTEST = ("-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider")


class Verdict(StrEnum):
    """The fate of a mutant. `late`: the tests did not end in time, which somebody would notice."""

    KILLED = "killed"
    LATE = "late"
    SURVIVED = "survived"
    UNTESTED = "untested"


LIVING = frozenset({Verdict.SURVIVED, Verdict.UNTESTED})


@dataclass(frozen=True, slots=True)
class Trial:
    """The verdict on a mutant, and the test that failed."""

    mutant: Mutant
    verdict: Verdict
    killer: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """The copy under `root`; `home` is where its runs keep what they keep."""

    root: Path
    home: Path

    def judge(self, mutant: Mutant, stages: Iterable[Stage]) -> Trial:
        """Ask one stage of tests after the other until one notices the mutant."""
        trial = Trial(mutant, Verdict.UNTESTED)
        for stage in stages:
            if stage.tests:
                trial = self.ask(mutant, stage)
                if trial.verdict not in LIVING:
                    break
        return trial

    def ask(self, mutant: Mutant, stage: Stage) -> Trial:
        """Run the tests of a stage over the mutant; whatever happens, the copy is as it was afterwards."""
        with self._mutated(mutant):
            outcome = self._run([*_PYTEST, *stage.tests], stage.seconds)
        if outcome is None:
            if stage.is_sample:
                return Trial(mutant, Verdict.SURVIVED)
            if self.failing(stage.tests, stage.seconds):
                raise RuntimeError(f"{stage.tests} take too long where nothing is broken")
            return Trial(mutant, Verdict.LATE)
        if outcome.returncode == _NO_TESTS:
            raise RuntimeError(f"pytest ran none of {stage.tests}: {outcome.stdout}")
        if outcome.returncode == 0:
            return Trial(mutant, Verdict.SURVIVED)
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", outcome.stdout, re.MULTILINE)
        return Trial(mutant, Verdict.KILLED, failed[1] if failed else "the start of pytest")

    def failing(self, tests: Iterable[str], seconds: float) -> list[str]:
        """Return which of the tests fail where nothing is broken."""
        arguments = [argument for argument in _PYTEST if argument != "-x"]
        outcome = self._run([*arguments, *tests], seconds)
        if outcome is None:
            return ["(out of time)"]
        return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", outcome.stdout, re.MULTILINE)

    @contextmanager
    def _mutated(self, mutant: Mutant) -> Iterator[None]:
        file = self.root / mutant.path
        compiled = Path(cache_from_source(str(file)))
        original, before = file.read_bytes(), compiled.read_bytes() if compiled.exists() else None
        try:
            # A compiled file is taken for good where time and size agree.
            compiled.unlink(missing_ok=True)
            stamp = file.stat()
            file.write_bytes(mutant.apply(original))
            yield
        finally:
            file.write_bytes(original)
            os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            if before is not None:
                compiled.write_bytes(before)

    def _run(self, arguments: list[str], seconds: float) -> subprocess.CompletedProcess[str] | None:
        """Run Python in the copy; None where it does not end after so many seconds of computing.

        Nothing is kept between two runs: rules that a mutant checked are of no use to the next one.
        """
        cache = self.home / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(self.root), str(self.root / "plugins"))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CACHE_HOME": str(cache),
            "KDSL_SHARED": str(conformance.SHARED),
        }
        limit = max(1, math.ceil(seconds))
        try:
            outcome = subprocess.run(
                [sys.executable, *arguments],
                cwd=self.root,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=IDLE_SECONDS,
                preexec_fn=partial(_limit, limit),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        return None if outcome.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else outcome


def _limit(seconds: int) -> None:
    """Bound what this process may compute and take."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@contextmanager
def copied_tree() -> Iterator[Tree]:
    """Copy the checkout to a temporary folder, with compiled files, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="kdsl-mutants-") as folder:
        root, home = Path(folder, "tree"), Path(folder, "home")
        home.mkdir()
        for name in _COPIED:
            # With what is compiled: most of it need not be compiled again.
            shutil.copytree(CHECKOUT / name, root / name)
        for file in CHECKOUT.iterdir():
            if file.is_file():
                shutil.copy2(file, root / file.name)
        for name in ("kdsl", "plugins", "tests"):
            compileall.compile_dir(root / name, quiet=2)
        yield Tree(root, home)
