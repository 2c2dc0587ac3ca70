"""Residual programs by signature, made for signatures that are repeated often."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.compile.frames import EpochOf, Frames
from kdsl.plan.compile.passes import RESIDUAL_PASSES, Pass
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.reads.signatures import SignatureOf
from kdsl.plan.residual.folder import TooMuch
from kdsl.plan.residual.rules import Filled

MAX_PROGRAMS: Final = 128
"""The most signatures with a residual program; beyond that it starts over. One takes 70 to 200 kB."""
MAX_COUNTED: Final = 4096
"""The most signatures whose attempts are counted; beyond that it starts over."""

R = TypeVar("R")


class FramedProgram(Protocol):
    frames: Frames


P = TypeVar("P", bound=FramedProgram)


@dataclass(frozen=True, slots=True)
class _Entry(Generic[P]):
    """The program of a signature, if it is worth one, with its epoch."""

    epoch: Hashable
    program: P | None


class ResidualPrograms(Generic[R, P]):
    """The residual programs of one rule; none before `keep`.

    `prepare` prepares the rule for `rewrite`, which returns the residual rule or raises TooMuch; `compile`
    compiles it with the remaining passes.
    """

    def __init__(
        self,
        rule: R,
        prepare: Callable[[R, CompiledFunctions], R],
        rewrite: Callable[[R, Filled, CompiledFunctions], R],
        compile: Callable[[R, CompiledFunctions, Sequence[Pass]], P],
        functions: CompiledFunctions,
    ) -> None:
        self._rule = rule
        self._prepare = prepare
        self._rewrite = rewrite
        self._compile = compile
        self._functions = functions
        self._signature_of: SignatureOf | None = None
        self._epoch_of: EpochOf = lambda live: None
        self._programs: dict[Hashable, _Entry[P]] = {}
        self._attempts: dict[Hashable, int] = {}
        self._lock = Lock()

    def keep(self, signature_of: SignatureOf, epoch_of: EpochOf) -> None:
        """Keep programs by signature."""
        # A probe observes the rule as written.
        if self._functions.probe is None:
            self._signature_of, self._epoch_of = signature_of, epoch_of

    def of(self, pod: PodInfo, snapshot: Snapshot) -> P | None:
        """Return the program for a pod; None if the rule itself has to run."""
        if self._signature_of is None:
            return None
        signature, epoch = self._signature_of(pod), self._epoch_of(snapshot.live)
        known = self._programs.get(signature)
        if known is not None and known.epoch == epoch:
            return known.program
        with self._lock:
            # The hash of the epoch: a count must not keep its snapshot alive.
            if not self._is_frequent((signature, hash(epoch))):
                return None
            if len(self._programs) >= MAX_PROGRAMS:
                self._programs.clear()
            program = self._program(pod, snapshot)
            self._programs[signature] = _Entry(epoch, program)
            return program

    @cached_property
    def _prepared(self) -> R:
        return self._prepare(self._rule, self._functions)

    def _is_frequent(self, signature: Hashable) -> bool:
        """Count an attempt of a signature; return whether a program pays."""
        if signature not in self._attempts and len(self._attempts) >= MAX_COUNTED:
            self._attempts.clear()
        times = self._attempts[signature] = self._attempts.get(signature, 0) + 1
        if times > self._functions.rewrite_after:
            del self._attempts[signature]
        return times > self._functions.rewrite_after

    def _program(self, pod: PodInfo, snapshot: Snapshot) -> P | None:
        assert self._signature_of is not None
        filled = {"pod": pod, "cluster": ClusterView(snapshot)}
        try:
            left = self._rewrite(self._prepared, filled, self._functions)
            program = self._compile(left, self._functions, RESIDUAL_PASSES)
        except (TooMuch, RecursionError):
            return None
        # The program serves one signature and epoch only.
        program.frames.keep(lambda pod: None, lambda live: None)
        return program
