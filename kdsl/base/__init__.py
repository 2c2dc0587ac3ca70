"""Spans, diagnostics, quantities, installed plugins and the clock, for every layer. Standard library only."""
