"""Traces of other forms as workloads: tables by a mapping, recorded clusters, exports of a simulator."""
