"""Pods, nodes and volumes in the form that rules read, computed once from their API objects."""
