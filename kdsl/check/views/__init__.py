"""The views of pods, nodes and the cluster that rules can read: data, and its reader."""
