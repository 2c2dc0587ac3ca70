"""Pods, nodes and volumes as rules see them, computed once from their API objects."""
