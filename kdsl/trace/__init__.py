"""Recorded decisions: what a run decided, and all that it takes to decide it again."""
