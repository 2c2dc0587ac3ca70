"""Analyses of rules that need compiled expressions: cost, overlap of teams, constants. They run no rule."""
