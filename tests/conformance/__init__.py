"""Answers of the reference systems and the official CEL suite, and what runs them."""

from __future__ import annotations

import os
from pathlib import Path

SHARED = Path(os.environ.get("KDSL_SHARED", Path(__file__).parents[3] / "shared"))
"""Where data that is not shipped is: beside the checkout, or where KDSL_SHARED says."""

CEL_SUITE = SHARED / "conformance" / "cel" / "tests.jsonl.gz"
