"""Residual programs by kind of pod: made for a kind that comes again and again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Snapshot
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.frames import EpochOf, Frames, KindOf
from kdsl.plan.compile.passes import LATE_PASSES, Pass
from kdsl.plan.compile.scope import Functions
from kdsl.plan.residual.folder import TooMuch
from kdsl.plan.residual.rules import Filled

MAX_KINDS: Final = 128
"""The most kinds of pods with a residual program; beyond that it starts anew. One takes 70 to 200 kB."""
MAX_MET: Final = 4096
"""The most kinds of pods that are counted; beyond that it starts anew."""

R = TypeVar("R")


class Program(Protocol):
    frames: Frames


P = TypeVar("P", bound=Program)


@dataclass(frozen=True, slots=True)
class _Made(Generic[P]):
    """The program of a kind of pod, if one is worth it, with the cluster and catalog that it was made for."""

    live: LiveSnapshot
    epoch: Hashable
    program: P | None


class Residuals(Generic[R, P]):
    """The residual programs of one rule: none until kinds of pods are told apart.

    `prepare` makes the rule ready for `rewrite`, which returns what is left of it or raises TooMuch, and
    `compile` makes a program of that by the passes that are left.
    """

    def __init__(
        self,
        rule: R,
        prepare: Callable[[R, Functions], R],
        rewrite: Callable[[R, Filled, Functions], R],
        compile: Callable[[R, Functions, Sequence[Pass]], P],
        functions: Functions,
    ) -> None:
        self._rule = rule
        self._prepare = prepare
        self._rewrite = rewrite
        self._compile = compile
        self._functions = functions
        self._kind_of: KindOf | None = None
        self._epoch_of: EpochOf = lambda snapshot: None
        self._programs: dict[Hashable, _Made[P]] = {}
        self._met: dict[Hashable, int] = {}
        self._lock = Lock()

    def keep(self, kind_of: KindOf, epoch_of: EpochOf) -> None:
        """Tell kinds of pods apart."""
        # A probe wants to see the rule as it was written.
        if self._functions.probe is None:
            self._kind_of, self._epoch_of = kind_of, epoch_of

    def of(self, pod: PodInfo, snapshot: Snapshot) -> P | None:
        """Return the program for a pod; None where the rule itself is to be asked."""
        if self._kind_of is None:
            return None
        kind, live, epoch = self._kind_of(pod), snapshot.live, self._epoch_of(snapshot)
        known = self._programs.get(kind)
        if known is not None and known.live is live and known.epoch == epoch:
            return known.program
        with self._lock:
            if not self._is_frequent((kind, epoch)):
                return None
            if len(self._programs) >= MAX_KINDS:
                self._programs.clear()
            program = self._program(pod, snapshot)
            self._programs[kind] = _Made(live, epoch, program)
            return program

    @cached_property
    def _prepared(self) -> R:
        return self._prepare(self._rule, self._functions)

    def _is_frequent(self, kind: Hashable) -> bool:
        """Count a kind; tell whether it was met so often that a program pays."""
        if kind not in self._met and len(self._met) >= MAX_MET:
            self._met.clear()
        times = self._met[kind] = self._met.get(kind, 0) + 1
        if times > self._functions.rewrite_after:
            del self._met[kind]
        return times > self._functions.rewrite_after

    def _program(self, pod: PodInfo, snapshot: Snapshot) -> P | None:
        """Make a program; None where that is not worth it."""
        assert self._kind_of is not None
        filled = {"pod": pod, "cluster": ClusterView(snapshot)}
        try:
            left = self._rewrite(self._prepared, filled, self._functions)
            program = self._compile(left, self._functions, LATE_PASSES)
        except (TooMuch, RecursionError):
            return None
        # Whoever is given the program is of its kind, over its state of the catalog.
        program.frames.keep(lambda pod: None, lambda snapshot: None)
        return program
