"""Spans, diagnostics, quantities and the clock: what every layer may use. Standard library only."""
