"""The recorded conversations of a real API server and a real kube-scheduler, replayed."""

from tests.conformance import SHARED

API_SERVER = SHARED / "conformance" / "live" / "apiserver.jsonl.gz"
