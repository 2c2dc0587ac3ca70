"""Workloads scheduled on recorded or generated clusters, in memory."""
