"""Workloads scheduled on recorded or generated clusters, without a cluster."""
