"""Writes to the API server: bindings, evictions, claims, volumes, annotations, statuses and events."""
