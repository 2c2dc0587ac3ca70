"""A Kubernetes API server in one process, for trying kdsl and for testing clients of a cluster.

It holds the resources that scheduling needs, answers like the recorded server of the conformance data, runs
pods by fake kubelets, and injects configured faults.
"""

from kdsl.sandbox.faults import Answer, BreakWatch, Delay, Faults, LoseAnswer, LoseRequest, Match
from kdsl.sandbox.options import SandboxOptions
from kdsl.sandbox.recorder import RecordedRequest, RequestRecorder
from kdsl.sandbox.sandbox import Sandbox
from kdsl.sandbox.thread import SandboxThread

__all__ = [
    "Answer",
    "BreakWatch",
    "Delay",
    "Faults",
    "LoseAnswer",
    "LoseRequest",
    "Match",
    "RecordedRequest",
    "RequestRecorder",
    "Sandbox",
    "SandboxOptions",
    "SandboxThread",
]
