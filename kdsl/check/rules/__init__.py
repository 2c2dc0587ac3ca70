"""Checks of single rules: predicates, scores, queues, preemptions and `tighten`."""
