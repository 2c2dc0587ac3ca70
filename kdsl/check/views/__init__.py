"""What rules can read of pods, nodes and the cluster: data, and how it is read."""
