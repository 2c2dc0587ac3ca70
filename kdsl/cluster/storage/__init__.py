"""Claims, volumes and CSI limits of pods on nodes, and what binding a claim changes."""
