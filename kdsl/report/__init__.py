"""Decisions, summaries and diagnostics rendered for people and for machines."""
