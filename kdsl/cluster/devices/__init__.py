"""Cards of nodes, their usage by pods, and the annotations that record it."""
