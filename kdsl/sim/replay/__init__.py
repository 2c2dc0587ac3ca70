"""Recorded runs decided again by other rules."""
