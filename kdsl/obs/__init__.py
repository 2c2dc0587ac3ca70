"""Metrics and logs of a running scheduler. They observe decisions and never change one."""
