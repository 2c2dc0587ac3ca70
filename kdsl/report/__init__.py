"""Renders decisions, summaries and diagnostics for people and for machines."""
