"""Syntax trees to a checked `RuleSet`: names, types, binding times, read-sets and profiles."""
