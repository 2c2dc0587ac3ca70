"""Benchmarks: `make bench`. Figures are in docs/performance.md."""
