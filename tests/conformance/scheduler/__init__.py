"""Recorded conversations of kube-scheduler with an API server, driven against the sandbox and kdsl."""

from tests.conformance import SHARED

SCENARIOS = SHARED / "conformance" / "live" / "scheduler.jsonl.gz"
