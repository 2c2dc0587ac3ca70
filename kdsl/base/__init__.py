"""Spans, diagnostics, quantities and the clock, for use in every layer. Standard library only."""
