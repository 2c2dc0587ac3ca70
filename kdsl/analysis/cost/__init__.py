"""Bounds of the cost of rules, as formulas over the sizes of their inputs, without running them."""
