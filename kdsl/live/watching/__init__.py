"""Reads from the API server: resources, lists, watches, and the changes that they send."""
