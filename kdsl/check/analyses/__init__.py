"""Analyses of checked rules: their facts, the events that cure a rejection, the changes between versions."""
